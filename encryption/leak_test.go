package encryption_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/event"
	"allium/internal/fakekms"
	"allium/internal/spantest"
	"allium/mongotest"
)

// secrets are the bytes that nothing of a test may show, by what they are.
type secrets map[string][]byte

// forms returns what a secret looks like as bytes, in base64 and hexadecimal, and as package fmt
// prints bytes. Of base64 it is what is the same wherever the secret begins.
func forms(secret []byte) []string {
	out := []string{string(secret), hex.EncodeToString(secret), strings.ToUpper(hex.EncodeToString(secret)),
		strings.Trim(fmt.Sprint(secret[:min(len(secret), 16)]), "[]")}
	for shift := range 3 {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := e.EncodeToString(append(make([]byte, shift), secret...))
			out = append(out, text[4:len(text)-4])
		}
	}
	return out
}

// shown returns the names of the secrets that a text shows.
func (s secrets) shown(text []byte) []string {
	var out []string
	for name, secret := range s {
		for i, form := range forms(secret) {
			if len(form) >= 8 && bytes.Contains(text, []byte(form)) {
				out = append(out, fmt.Sprintf("%s (form %d)", name, i))
			}
		}
	}
	return out
}

// The search finds what it looks for.
func TestSecretsAreFound(t *testing.T) {
	s := secrets{"x": []byte("a-secret-of-some-length")}
	for _, text := range []string{"my a-secret-of-some-length!", base64.StdEncoding.EncodeToString([]byte("1a-secret-of-some-length2")),
		base64.URLEncoding.EncodeToString([]byte("12a-secret-of-some-length")), hex.EncodeToString(s["x"]), fmt.Sprint(s["x"]), fmt.Sprintf("%X", s["x"])} {
		if len(s.shown([]byte(text))) == 0 {
			t.Errorf("not found in %s", text)
		}
	}
	if got := s.shown([]byte("a-secret-of-no-length")); got != nil {
		t.Error(got)
	}
}

// sink collects everything that a program gets to see.
type sink struct {
	mu   sync.Mutex
	list [][]byte
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, bytes.Clone(p))
	return len(p), nil
}

func (s *sink) add(what string, v any) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(s, what+" "+verb, v)
	}
	if text, err := json.Marshal(v); err == nil {
		s.Write(text)
	}
	slog.New(slog.NewTextHandler(s, nil)).Info(what, "v", v)
}

// failed adds an error with all that it wraps, and reports the test if there is none.
func (s *sink) failed(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
	}
	for err != nil {
		s.add(what, err)
		err = errors.Unwrap(err)
	}
}

func (s *sink) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) {
			s.Write(e.Command)
			s.add("started", e)
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			s.Write(e.Reply)
			s.add("succeeded", e)
		},
		Failed: func(_ context.Context, e *event.CommandFailed) { s.add("failed", e) },
	}
}

// options returns those of a client with everything that tells about it.
func (s *sink) options() (allium.ClientOptions, *spantest.Recorder) {
	spans := &spantest.Recorder{}
	logs := slog.New(slog.NewJSONHandler(s, &slog.HandlerOptions{Level: slog.Level(-100)}))
	return allium.ClientOptions{Logger: logs, MaxLogDocumentLength: 1 << 20, CommandMonitor: s.monitor(),
		Tracing: &allium.Tracing{Tracer: spans, QueryTextMaxLength: 1 << 20}}, spans
}

func (s *sink) span(span *spantest.Span) {
	s.add("span", span.Name)
	s.add("attributes", span.Attributes)
	for _, err := range span.Errors {
		s.add("recorded", err)
	}
	for _, nested := range span.Nested {
		s.span(nested)
	}
}

// No log, event, error, trace or printed option shows the value of a marked field, key material or
// a credential, whether things go well or not.
func TestNothingLeaks(t *testing.T) {
	noAWSEnvironment(t)
	ctx := t.Context()
	plaintext := "the marked value of a patient"
	material := slices.Concat([]byte("material of the data key, as a program gives it: "), bytes.Repeat([]byte{'m'}, 96-49))
	master := bytes.Repeat([]byte("a local master!!"), 6)
	all, server := services(t)
	s := secrets{
		"plaintext": []byte(plaintext), "number": []byte("987654321987"), "material": material[:48], "master key": master[:48],
		"AWS key": []byte(fakekms.AWSSecretAccessKey), "AWS session": []byte(fakekms.AWSSessionToken), "Azure secret": []byte(fakekms.AzureClientSecret),
		"Azure token": []byte(fakekms.AzureToken), "GCP token": []byte(fakekms.GCPToken), "GCP key": server.GCPPrivateKey()[100:160],
	}
	out := &sink{}
	logger := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	all.KMS["local"] = kms.Local{Key: master}
	all.KMS["aws:session"] = kms.AWS{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey, SessionToken: fakekms.AWSSessionToken}
	all.KMS["azure:token"], all.KMS["gcp:token"] = kms.Azure{AccessToken: fakekms.AzureToken}, kms.GCP{AccessToken: fakekms.GCPToken}
	all.TLS["aws:session"], all.TLS["azure:token"], all.TLS["gcp:token"] = server.TLS(), server.TLS(), server.TLS()
	all.KeyVault, all.Logger = "keyvault.datakeys", logger

	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	co, vaultSpans := out.options()
	vault := must(allium.Open(d.URI(), co))
	defer vault.Close(ctx)
	all.KeyVaultClient = vault
	keys := must(encryption.New(encryption.Options{KeyOptions: all}))
	defer keys.Close()

	// What is configured.
	ao := encryption.AutoOptions{KeyOptions: all}
	for name, v := range map[string]any{
		"Options": encryption.Options{KeyOptions: all}, "AutoOptions": ao, "KeyOptions": all, "Providers": all.KMS, "TLS": all.TLS,
		"DataKeyOptions": encryption.DataKeyOptions{Material: material}, "DataKeyOptions in a list": []encryption.DataKeyOptions{{Material: material}},
		"pointer": &encryption.Options{KeyOptions: all}, "Auto": encryption.Auto(ao), "Client": keys, "ClientOptions": allium.ClientOptions{Encryption: encryption.Auto(ao)},
	} {
		out.add(name, v)
	}
	for _, p := range all.KMS {
		out.add("provider", p)
	}

	// Keys of all services, what they encrypt, and what goes wrong with it.
	ids := map[string]bson.UUID{}
	for name := range all.KMS {
		kind, _, _ := strings.Cut(name, ":")
		ids[name] = must(keys.CreateDataKey(ctx, name, encryption.DataKeyOptions{MasterKey: masterKeys[kind], Material: material, AltNames: []string{name}}))
		id := ids[name]
		fresh := must(encryption.New(encryption.Options{KeyOptions: all}))
		secret := must(fresh.Encrypt(ctx, plaintext, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}))
		out.add("ciphertext", secret)
		for i := range secret.Data {
			if i%7 == 0 {
				forged := bson.Binary{Subtype: secret.Subtype, Data: bytes.Clone(secret.Data)}
				forged.Data[i] ^= 0x10
				if _, err := keys.Decrypt(ctx, forged); err != nil {
					out.failed(t, "forged", err)
				}
			}
		}
		fresh.Close()
	}
	id := ids["local"]
	_, err := keys.CreateDataKey(ctx, "local", encryption.DataKeyOptions{Material: material[1:]})
	out.failed(t, "material that is too short", err)
	bounds := &encryption.RangeOptions{Min: int64(0), Max: int64(10)}
	_, err = keys.Encrypt(ctx, int64(987654321987), encryption.EncryptOptions{Algorithm: encryption.Range, KeyID: &id, Contention: new(int64(0)), Range: bounds})
	out.failed(t, "a value out of bounds", err)
	_, err = keys.EncryptExpression(ctx, bson.D{{Key: "$and", Value: bson.A{bson.D{{Key: "a", Value: bson.D{{Key: "$smells", Value: plaintext}}}}}}},
		encryption.EncryptOptions{Algorithm: encryption.Range, Query: encryption.RangeQuery, KeyID: &id, Contention: new(int64(0)), Range: bounds})
	out.failed(t, "an expression", err)
	_, err = keys.Encrypt(ctx, struct{ F func() }{}, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})
	out.failed(t, "a value without BSON", err)
	_, err = keys.Encrypt(ctx, plaintext, encryption.EncryptOptions{Algorithm: encryption.Indexed, KeyID: &id})
	out.failed(t, "no contention", err)
	sealed := must(encryption.Seal(ctx, keys, plaintext, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}))
	out.add("Encrypted", sealed)
	out.add("Encrypted in a struct", struct{ SSN *encryption.Encrypted[string] }{&sealed})
	must(keys.RewrapManyDataKey(ctx, bson.D{}, encryption.RewrapOptions{Provider: "local"}))
	out.add("DataKey", must(keys.Key(ctx, id)))

	// Key services that repeat what they were asked.
	server.Answer(func(r *http.Request) (int, string) {
		body, _ := io.ReadAll(r.Body)
		return http.StatusBadRequest, fmt.Sprint(r.Header, " ", string(body))
	})
	for name := range all.KMS {
		if kind, _, _ := strings.Cut(name, ":"); kind != "local" && kind != "kmip" {
			fresh := must(encryption.New(encryption.Options{KeyOptions: all}))
			_, err := fresh.CreateDataKey(ctx, name, encryption.DataKeyOptions{MasterKey: masterKeys[kind], Material: material})
			out.failed(t, "echo "+name, err)
		}
	}
	server.Answer(nil)
	callback := all
	callback.KMS = kms.Providers{"aws": kms.AWS{Credentials: func(context.Context) (auth.AWSCredentials, error) {
		return auth.AWSCredentials{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey, SessionToken: "wrong"}, nil
	}}}
	callback.TLS = map[string]*tls.Config{"aws": server.TLS()}
	wrong := must(encryption.New(encryption.Options{KeyOptions: callback}))
	_, err = wrong.CreateDataKey(ctx, "aws", encryption.DataKeyOptions{MasterKey: masterKeys["aws"], Material: material})
	out.failed(t, "credentials on demand", err)

	// Commands of a client, those that are refused, and those that the server refuses.
	all.KeyVaultClient = nil
	other := must(keys.CreateDataKey(ctx, "local"))
	field := func(id bson.UUID, algorithm encryption.Algorithm, kind string) bson.D {
		return bson.D{{Key: "encrypt", Value: bson.D{{Key: "keyId", Value: bson.A{id}}, {Key: "bsonType", Value: kind}, {Key: "algorithm", Value: string(algorithm)}}}}
	}
	ao = encryption.AutoOptions{KeyOptions: all, Schemas: map[string]any{"db.coll": bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{
		{Key: "ssn", Value: field(id, encryption.Deterministic, "string")}, {Key: "record", Value: field(id, encryption.Random, "string")},
		{Key: "n", Value: field(id, encryption.Deterministic, "long")},
	}}}}, EncryptedFields: map[string]any{"db.qe": bson.D{{Key: "fields", Value: bson.A{
		bson.D{{Key: "path", Value: "ssn"}, {Key: "bsonType", Value: "string"}, {Key: "keyId", Value: id}, {Key: "queries", Value: bson.D{{Key: "queryType", Value: "equality"}}}},
		bson.D{{Key: "path", Value: "n"}, {Key: "bsonType", Value: "long"}, {Key: "keyId", Value: other},
			{Key: "queries", Value: bson.D{{Key: "queryType", Value: "range"}, {Key: "min", Value: int64(0)}, {Key: "max", Value: int64(1000)}}}},
	}}}}}
	co, spans := out.options()
	co.Encryption = encryption.Auto(ao)
	client := must(allium.Open(d.URI(), co))
	defer client.Close(ctx)
	coll := client.Database("db").Collection("coll")
	doc := bson.D{{Key: "_id", Value: 1}, {Key: "ssn", Value: plaintext}, {Key: "record", Value: plaintext}, {Key: "n", Value: int64(987654321987)}}
	must(coll.InsertOne(ctx, doc))
	if found := must(coll.FindOne(ctx, bson.D{{Key: "ssn", Value: plaintext}})); len(found) != 4 || found[1].Value != plaintext {
		t.Errorf("found %v", found)
	}
	must(coll.UpdateOne(ctx, bson.D{{Key: "ssn", Value: plaintext}}, bson.D{{Key: "$set", Value: bson.D{{Key: "record", Value: plaintext}}}}))
	must(coll.CountDocuments(ctx, bson.D{{Key: "ssn", Value: bson.D{{Key: "$in", Value: bson.A{plaintext, "x"}}}}}))
	_, err = coll.InsertOne(ctx, doc)
	out.failed(t, "a duplicate", err)
	for what, filter := range map[string]bson.D{
		"$gt":    {{Key: "ssn", Value: bson.D{{Key: "$gt", Value: plaintext}}}},
		"random": {{Key: "record", Value: plaintext}},
		"$regex": {{Key: "ssn", Value: bson.D{{Key: "$regex", Value: plaintext}}}},
		"$expr":  {{Key: "$expr", Value: bson.D{{Key: "$eq", Value: bson.A{"$record", plaintext}}}}},
		"$where": {{Key: "$where", Value: plaintext}},
		"type":   {{Key: "n", Value: plaintext}},
		"other":  {{Key: "$" + plaintext[:3], Value: plaintext}},
	} {
		_, err := coll.FindOne(ctx, filter)
		out.failed(t, what, err)
		_, err = coll.UpdateOne(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: plaintext[:1]}}}})
		out.failed(t, what+" of an update", err)
	}
	_, err = coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$push", Value: bson.D{{Key: "ssn", Value: plaintext}}}})
	out.failed(t, "$push", err)
	_, err = coll.InsertOne(ctx, bson.D{{Key: "n", Value: plaintext}})
	out.failed(t, "another type", err)
	_, err = client.Database("db").Collection("qe").InsertOne(ctx, bson.D{{Key: "n", Value: int64(987654321987)}})
	out.failed(t, "out of the field's bounds", err)
	plan, err := ao.DryRun("db", bson.D{{Key: "insert", Value: "coll"}, {Key: "documents", Value: bson.A{doc}}})
	if err != nil || len(plan) != 3 {
		t.Errorf("plan %v, %v", plan, err)
	}
	out.add("plan", plan)

	for _, span := range slices.Concat(vaultSpans.Take(), spans.Take()) {
		out.span(span)
	}
	if len(out.list) < 1000 {
		t.Errorf("only %d texts were searched", len(out.list))
	}
	for _, text := range out.list {
		if found := s.shown(text); found != nil {
			t.Errorf("%q in %.1500s", found, text)
		}
	}
}

// The messages about keys, key services and schemas, in their order.
func TestDebugLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		plain := must(allium.Open(d.URI(), allium.ClientOptions{Dialer: d}))
		defer plain.Close(ctx)
		var text strings.Builder
		handler := slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})
		o := encryption.KeyOptions{KeyVaultClient: plain, KeyVault: "keyvault.datakeys", KMS: localKMS(), Logger: slog.New(handler)}
		o.KMS["aws"] = kms.AWS{AccessKeyID: "a", SecretAccessKey: "b"}
		o.KMSConnect = func(context.Context, string) (net.Conn, error) { return nil, errors.New("no network") }
		keys := must(encryption.New(encryption.Options{KeyOptions: o}))
		defer keys.Close()
		id := must(keys.CreateDataKey(ctx, "local", encryption.DataKeyOptions{AltNames: []string{"name"}}))
		eo := encryption.EncryptOptions{Algorithm: encryption.Random, KeyAltName: "name"}
		must(keys.Encrypt(ctx, 1, eo))
		must(keys.Encrypt(ctx, 1, eo))
		time.Sleep(time.Minute)
		synctest.Wait() // the cache drops what is old at this very instant
		must(keys.Encrypt(ctx, 1, eo))
		if _, err := keys.Encrypt(ctx, 1, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &bson.UUID{}}); err == nil {
			t.Error("a key that does not exist is found")
		}
		limited, cancel := context.WithTimeout(ctx, 0)
		defer cancel()
		if _, err := createKeyWithin(limited, keys); err == nil {
			t.Error("a key is made without a network")
		}
		const from = "msg=%q component=encryption keys=[%s]%s\n"
		want := fmt.Sprintf(from, "Data keys fetched", "name", " durationMS=0") +
			fmt.Sprintf(from, "Data keys taken from the cache", "name", "") +
			fmt.Sprintf(from, "Data keys dropped from the cache", id, "") +
			fmt.Sprintf(from, "Data keys fetched", "name", " durationMS=0") +
			fmt.Sprintf(from, "Data keys not fetched", bson.UUID{}, fmt.Sprintf(" durationMS=0 failure=%q", "key 00000000-0000-0000-0000-000000000000: "+encryption.ErrKeyNotFound.Error())) +
			`msg="Key service request failed" component=encryption provider=aws endpoint=kms.us-east-1.amazonaws.com:443 attempt=1 durationMS=0 failure="no network"` + "\n"
		if got := text.String(); got != want {
			t.Errorf("the log is\n%swant\n%s", got, want)
		}

		text.Reset()
		o.KeyVaultClient = nil
		client := must(allium.Open(d.URI(), allium.ClientOptions{Dialer: d, Encryption: encryption.Auto(encryption.AutoOptions{KeyOptions: o})}))
		defer client.Close(ctx)
		must(client.Database("db").Collection("coll").CountDocuments(ctx, bson.D{}))
		if want := `msg="Schemas fetched" component=encryption namespaces=[db.coll] durationMS=0` + "\n"; text.String() != want {
			t.Errorf("the log is\n%swant\n%s", text.String(), want)
		}

		text.Reset()
		o.Logger = nil // the client's
		other := must(allium.Open(d.URI(), allium.ClientOptions{Dialer: d, Logger: slog.New(handler), Encryption: encryption.Auto(encryption.AutoOptions{KeyOptions: o})}))
		defer other.Close(ctx)
		must(other.Database("db").Collection("coll").CountDocuments(ctx, bson.D{}))
		if !strings.Contains(text.String(), `msg="Schemas fetched" component=encryption`) {
			t.Errorf("the client's log is\n%s", text.String())
		}
	})
}

func createKeyWithin(ctx context.Context, c *encryption.Client) (bson.UUID, error) {
	return c.CreateDataKey(ctx, "aws", encryption.DataKeyOptions{MasterKey: masterKeys["aws"]})
}
