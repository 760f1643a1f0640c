package encryption_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/mongoerr"
	"allium/mongotest"
)

// What is wrong with a schema is a *RefusedError with its namespace, wherever it comes from.
func TestWrongSchemas(t *testing.T) {
	ctx := t.Context()
	p := startProse(t, nil)
	encrypt := func(more ...bson.E) bson.D {
		return bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{
			{Key: "a", Value: bson.D{{Key: "encrypt", Value: append(bson.D{{Key: "bsonType", Value: "string"}}, more...)}}},
		}}}
	}
	algorithm := bson.E{Key: "algorithm", Value: string(encryption.Deterministic)}
	id := bson.E{Key: "keyId", Value: bson.A{bson.UUID{1}}}
	fields := func(more ...bson.E) bson.D {
		return bson.D{{Key: "fields", Value: bson.A{append(bson.D{{Key: "path", Value: "a"}, {Key: "bsonType", Value: "string"}}, more...)}}}
	}
	for name, c := range map[string]struct {
		schema, fields any // configured
		validator      any // of the server's collection
	}{
		"no key":               {schema: encrypt(algorithm)},
		"no algorithm":         {schema: encrypt(id)},
		"not an object":        {schema: bson.D{{Key: "properties", Value: encrypt(algorithm, id)[1].Value}}},
		"keyword not allowed":  {schema: append(encrypt(algorithm, id), bson.E{Key: "required", Value: bson.A{"a"}})},
		"the server's, no key": {validator: encrypt(algorithm)},
		"fields not a list":    {fields: bson.D{{Key: "fields", Value: bson.A{1}}}},
		"fields without a key": {fields: fields()},
		"two keys":             {fields: fields(bson.E{Key: "keyId", Value: bson.UUID{1}}, bson.E{Key: "keyAltName", Value: "x"})},
		"unknown query":        {fields: fields(bson.E{Key: "keyId", Value: bson.UUID{1}}, bson.E{Key: "queries", Value: bson.D{{Key: "queryType", Value: "smell"}}})},
		"strEncodeVersion":     {fields: append(fields(bson.E{Key: "keyId", Value: bson.UUID{1}}), bson.E{Key: "strEncodeVersion", Value: 9})},
	} {
		o := encryption.AutoOptions{KeyOptions: encryption.KeyOptions{KeyVault: "keyvault.datakeys", KMS: localKMS()}}
		if c.schema != nil {
			o.Schemas = map[string]any{"db.coll": c.schema}
		}
		if c.fields != nil {
			o.EncryptedFields = map[string]any{"db.coll": c.fields}
		}
		if c.validator != nil {
			p.create("coll", "validator", validator(c.validator))
		}
		client, err := allium.Open(p.d.URI(), allium.ClientOptions{Encryption: encryption.Auto(o)})
		if err == nil {
			_, err = client.Database("db").Collection("coll").InsertOne(ctx, bson.D{{Key: "a", Value: "marked"}})
			client.Close(ctx)
		}
		if e, ok := errors.AsType[*encryption.RefusedError](err); !ok || e.Namespace != "db.coll" || e.Reason == "" {
			t.Errorf("%s: %v (%+v)", name, err, e)
		} else if strings.Contains(err.Error(), "marked") {
			t.Errorf("%s: the error has a value: %v", name, err)
		}
		if c.schema != nil || c.fields != nil {
			if _, err := o.DryRun("db", bson.D{{Key: "find", Value: "coll"}}); !isRefused(err) {
				t.Errorf("%s, dry run: %v", name, err)
			}
		}
		if err := p.plain.Database("db").Collection("coll").Drop(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*encryption.RefusedError](err)
	return ok
}

// Ciphertexts that were changed, cut, or made with another key are errors of a class that says so,
// and name the field and the key.
func TestWrongCiphertexts(t *testing.T) {
	ctx := t.Context()
	e := startAuto(t, encryption.AutoOptions{})
	other := must(e.keys.CreateDataKey(ctx, "local"))
	replace := func(data []byte, at int, with ...byte) []byte {
		data = bytes.Clone(data)
		copy(data[at:], with)
		return data
	}
	for kind, o := range map[string]encryption.EncryptOptions{
		"deterministic": {Algorithm: encryption.Deterministic}, "random": {Algorithm: encryption.Random},
		"unindexed": {Algorithm: encryption.Unindexed}, "indexed": {Algorithm: encryption.Indexed, Contention: new(int64(0))},
	} {
		o.KeyID = &e.id
		good := must(e.keys.Encrypt(ctx, "a value that takes more than one block", o)).Data
		n := len(good)
		cases := map[string]struct {
			data []byte
			want []error // one of these
		}{
			"changed at the end": {replace(good, n-1, good[n-1]^1), []error{encryption.ErrAuthentication, encryption.ErrMalformed}},
			"empty":              {[]byte{}, []error{encryption.ErrMalformed}},
			"one byte":           {good[:1], []error{encryption.ErrMalformed}},
			"of an unknown kind": {replace(good, 0, 99), []error{encryption.ErrMalformed}},
			"of the first QE":    {replace(good, 0, 4), []error{encryption.ErrObsolete}},
		}
		if kind != "indexed" { // that is a payload, a document
			cases["changed in the middle"] = struct {
				data []byte
				want []error
			}{replace(good, n/2, good[n/2]^1), []error{encryption.ErrAuthentication}}
			cases["of another type"] = struct {
				data []byte
				want []error
			}{replace(good, 17, byte(bson.TypeInt32)), []error{encryption.ErrAuthentication}}
			cases["cut by a byte"] = struct {
				data []byte
				want []error
			}{good[:n-1], []error{encryption.ErrMalformed}}
			cases["cut by a block"] = struct {
				data []byte
				want []error
			}{good[:n-16], []error{encryption.ErrAuthentication}}
			cases["cut to the header"] = struct {
				data []byte
				want []error
			}{good[:18], []error{encryption.ErrMalformed}}
			cases["for another key"] = struct {
				data []byte
				want []error
			}{replace(good, 1, other[:]...), []error{encryption.ErrAuthentication}}
			cases["for a key that does not exist"] = struct {
				data []byte
				want []error
			}{replace(good, 1, 9, 9, 9), []error{encryption.ErrKeyNotFound}}
		}
		for name, c := range cases {
			b := bson.Binary{Subtype: bson.BinaryEncrypted, Data: c.data}
			v, err := e.keys.Decrypt(ctx, b)
			if !slices.ContainsFunc(c.want, func(want error) bool { return errors.Is(err, want) }) {
				t.Errorf("%s, %s: %v, %v; want one of %v", kind, name, v, err, c.want)
			}
			if len(c.data) == 0 {
				continue // automatic decryption leaves what is not encrypted
			}
			coll := e.plain.Database("db").Collection("other")
			must(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: kind + name}, {Key: "a", Value: bson.A{bson.D{{Key: "b", Value: b}}}}}))
			found, err := e.client.Database("db").Collection("other").FindOne(ctx, bson.D{{Key: "_id", Value: kind + name}})
			if !slices.ContainsFunc(c.want, func(want error) bool { return errors.Is(err, want) }) {
				t.Errorf("%s, %s, found: %v, %v; want one of %v", kind, name, found, err, c.want)
			} else if errors.Is(err, encryption.ErrAuthentication) && !(strings.Contains(err.Error(), "a.0.b") && strings.Contains(err.Error(), "another key than")) {
				t.Errorf("%s, %s: the error tells neither field nor key: %v", kind, name, err)
			}
		}
	}
	// A data key that was changed, or that another master key wraps.
	vault := e.plain.Database("keyvault").Collection("datakeys")
	changed := must(allium.CollectionOf[bson.Raw](e.plain.Database("keyvault"), "datakeys").FindOne(ctx, bson.D{{Key: "_id", Value: other}}))
	material, _ := changed.Lookup("keyMaterial").Binary()
	material.Data[40] ^= 1
	must(vault.UpdateOne(ctx, bson.D{{Key: "_id", Value: other}}, bson.D{{Key: "$set", Value: bson.D{{Key: "keyMaterial", Value: material}}}}))
	fresh := must(encryption.New(encryption.Options{KeyOptions: encryption.KeyOptions{KeyVaultClient: e.plain, KeyVault: "keyvault.datakeys", KMS: localKMS()}}))
	_, err := fresh.Encrypt(ctx, 1, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &other})
	if !errors.Is(err, encryption.ErrAuthentication) || !strings.Contains(err.Error(), other.String()) {
		t.Errorf("a data key that was changed: %v", err)
	}
	wrong := must(encryption.New(encryption.Options{KeyOptions: encryption.KeyOptions{KeyVaultClient: e.plain, KeyVault: "keyvault.datakeys",
		KMS: kms.Providers{"local": kms.Local{Key: bytes.Repeat([]byte{9}, kms.LocalKeySize)}}}}))
	if _, err := wrong.Encrypt(ctx, 1, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &e.id}); !errors.Is(err, encryption.ErrAuthentication) ||
		!strings.Contains(err.Error(), "another master key") || !strings.Contains(err.Error(), e.id.String()) {
		t.Errorf("another master key: %v", err)
	}
}

// Whatever a key service does, the error tells the service, its endpoint and the status, and comes
// within the deadline.
func TestFailingKeyServices(t *testing.T) {
	p := &prose{t: t, d: mongotest.Start(t, mongotest.ReplicaSet(1))}
	p.plain, _ = p.open(allium.ClientOptions{})
	all, server := services(t)
	good := p.encryption(encryption.Options{KeyOptions: all})
	answering := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			conn.Read(make([]byte, 4096))
			io.WriteString(conn, text)
		}
	}
	reply := func(status int, header, body string) func(net.Conn) {
		return answering(fmt.Sprintf("HTTP/1.1 %d %s\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), header, len(body), body))
	}
	silent := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	endpoints := map[string]string{"aws": "kms.us-east-1.amazonaws.com:443", "azure": "login.microsoftonline.com:443", "gcp": "oauth2.googleapis.com:443", "kmip": "localhost:5698"}
	for _, c := range []struct {
		name   string
		serve  func(net.Conn) // nil: it is down
		status int
		kmip   bool // makes sense for KMIP
		late   bool // ends with the deadline
	}{
		{"down", nil, 0, true, false},
		{"silent", silent, 0, true, true},
		{"closes", func(net.Conn) {}, 0, true, false},
		{"no HTTP", answering("\x00\x01\x02 hello\r\n\r\n"), 0, true, false},
		{"unfinished", answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), 0, false, false},
		{"redirects", reply(307, "Location: https://elsewhere.example/\r\n", ""), 307, false, false},
		{"not allowed", reply(403, "", `{"message": "no"}`), 403, false, false},
		{"overloaded", reply(503, "", ""), 503, false, false},
		{"no JSON", reply(200, "", "<html>"), 200, false, false},
		{"other JSON", reply(200, "", `{"x": 1}`), 200, false, false},
		{"JSON of other types", reply(200, "", `{"CiphertextBlob": 1, "Plaintext": [], "access_token": {}, "value": 1}`), 200, false, false},
		{"a list", reply(200, "", `[]`), 200, false, false},
		{"no base64", reply(200, "", `{"CiphertextBlob": "!", "Plaintext": "!", "access_token": "", "value": "!"}`), 200, false, false},
		{"KMIP of no length", answering("\x42\x00\x7b\x01\xff\xff\xff\xff"), 0, true, false},
		{"KMIP of nothing", answering("\x42\x00\x7b\x01\x00\x00\x00\x00"), 0, true, false},
	} {
		for provider, endpoint := range endpoints {
			if provider == "kmip" && !c.kmip {
				continue
			}
			id, err := createKey(t, good, provider, masterKeys[provider])
			if err != nil {
				t.Fatal(err)
			}
			t.Run(c.name+"/"+provider, func(t *testing.T) {
				t.Parallel() // attempts wait for each other
				o := all
				o.KMS, o.TLS = kms.Providers{provider: all.KMS[provider]}, map[string]*tls.Config{provider: all.TLS[provider]}
				port := "1"
				if c.serve != nil {
					var err error
					if port, err = server.Serve(c.serve); err != nil {
						t.Fatal(err)
					}
				}
				var dialed []string
				o.KMSConnect = func(ctx context.Context, address string) (net.Conn, error) {
					dialed = append(dialed, address)
					return server.Dial(ctx, "127.0.0.1:"+port)
				}
				o.KeyVaultClient, o.KeyVault = p.plain, "keyvault.datakeys"
				timeout := time.Minute
				if c.late {
					timeout = 100 * time.Millisecond
				}
				keys, err := encryption.New(encryption.Options{KeyOptions: o, Timeout: &timeout})
				if err != nil {
					t.Fatal(err)
				}
				defer keys.Close()
				_, made := createKey(t, keys, provider, masterKeys[provider])
				_, encrypted := keys.Encrypt(t.Context(), "x", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})
				for what, err := range map[string]error{"create": made, "encrypt": encrypted} {
					e, ok := errors.AsType[*kms.Error](err)
					if !ok || e.Provider != provider || e.Endpoint != endpoint || e.Status != c.status {
						t.Errorf("%s: %#v: %v", what, e, err)
					}
					if errors.Is(err, context.DeadlineExceeded) != c.late {
						t.Errorf("%s: %v", what, err)
					}
				}
				for _, address := range dialed {
					if address != endpoint {
						t.Errorf("connected to %s", address)
					}
				}
			})
		}
	}
}

// givesUp is a value whose encoder ends a context, and gives up with it.
type givesUp struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	why    error
}

func (g givesUp) MarshalBSONValue() (byte, []byte, error) {
	g.cancel(g.why)
	return 0, nil, fmt.Errorf("looking something up: %w", g.ctx.Err())
}

func (g givesUp) MarshalBSON() ([]byte, error) {
	_, _, err := g.MarshalBSONValue()
	return nil, err
}

// TestEncodersGiveUp: wherever values are encoded to be encrypted, an encoder that gives up because
// the context has ended makes a TimeoutError, as in operations; another error of one does not.
func TestEncodersGiveUp(t *testing.T) {
	p := startProse(t, nil)
	id := must(p.keys.CreateDataKey(t.Context(), "local"))
	equal := encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id}
	by := func(min any) encryption.EncryptOptions {
		return encryption.EncryptOptions{Algorithm: encryption.Range, KeyID: &id, Contention: new(int64(0)), Query: encryption.RangeQuery,
			Range: &encryption.RangeOptions{Min: min, Max: int32(9)}}
	}
	between := bson.D{{Key: "$and", Value: bson.A{bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: int32(1)}}}}}}}
	for name, run := range map[string]func(ctx context.Context, v any) error{
		"Encrypt": func(ctx context.Context, v any) error {
			_, err := p.keys.Encrypt(ctx, v, equal)
			return err
		},
		"a bound": func(ctx context.Context, v any) error {
			_, err := p.keys.Encrypt(ctx, int32(1), by(v))
			return err
		},
		"EncryptExpression": func(ctx context.Context, v any) error {
			_, err := p.keys.EncryptExpression(ctx, bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: v}}}}, by(int32(0)))
			return err
		},
		"a bound of an expression": func(ctx context.Context, v any) error {
			_, err := p.keys.EncryptExpression(ctx, between, by(v))
			return err
		},
		"CreateEncryptedCollection": func(ctx context.Context, v any) error {
			_, err := p.keys.CreateEncryptedCollection(ctx, p.plain.Database("db"), "c", encryption.CollectionOptions{
				Provider: "local", Create: allium.CreateCollectionOptions{EncryptedFields: v}})
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the request was withdrawn")
		err := run(ctx, givesUp{ctx, cancel, why})
		if e, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || e.Phase != mongoerr.PhaseEncoding || !e.Canceled() || !errors.Is(err, why) {
			t.Errorf("%s: %v, want a TimeoutError", name, err)
		}
		if err := run(t.Context(), givesUp{ctx, cancel, why}); errors.As(err, new(*mongoerr.TimeoutError)) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want what the encoder says", name, err)
		}
	}
}
