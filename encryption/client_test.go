package encryption_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/event"
	"allium/internal/crypt"
	"allium/mongoerr"
	"allium/mongotest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// localMaster is the local master key of the specification's tests.
var localMaster = must(base64.StdEncoding.DecodeString("Mng0NCt4ZHVUYUJCa1kxNkVyNUR1QURhZ2h2UzR2d2RrZzh0cFBwM3R6NmdWMDFBMUN3YkQ5aXRRMkhGRGdQV09wOGVNYUMxT2k3NjZKelhaQmRCZGJkTXVyZG9uSjFk"))

// world is a deployment with a client, and a Client of its key vault.
type world struct {
	client   *allium.Client
	keys     *encryption.Client
	commands []string // that were started
}

func start(t *testing.T, o encryption.Options) *world {
	t.Helper()
	w := &world{}
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	var err error
	w.client, err = allium.Open(d.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) { w.commands = append(w.commands, e.CommandName) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.client.Close(context.Background()) })
	w.keys = w.more(t, o)
	return w
}

// more returns another Client of the same key vault.
func (w *world) more(t *testing.T, o encryption.Options) *encryption.Client {
	t.Helper()
	o.KeyVaultClient, o.KeyVault = w.client, "keyvault.datakeys"
	if o.KMS == nil {
		o.KMS = kms.Providers{"local": kms.Local{Key: localMaster}}
	}
	keys, err := encryption.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	return keys
}

// Prose test 1, "Custom Key Material Test".
func TestProseCustomKeyMaterial(t *testing.T) {
	w := start(t, encryption.Options{})
	material := must(base64.StdEncoding.DecodeString("xPTAjBRG5JiPm+d3fj6XLi2q5DMXUS/f1f+SMAlhhwkhDRL0kr8r9GDLIGTAGlvC+HVjSIgdL+RKwZCvpXSyxTICWSXTUYsWYPyu3IoHbuBZdmw2faM3WhcRIgbMReU5"))
	id, err := w.keys.CreateDataKey(t.Context(), "local", encryption.DataKeyOptions{Material: material})
	if err != nil {
		t.Fatal(err)
	}
	vault := w.client.Database("keyvault").Collection("datakeys")
	doc, err := vault.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}})
	if err != nil {
		t.Fatal(err)
	}
	doc[0].Value = bson.UUID{}
	if _, err := vault.InsertOne(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
	got, err := w.keys.Encrypt(t.Context(), "test", encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: new(bson.UUID)})
	if err != nil {
		t.Fatal(err)
	}
	const want = "AQAAAAAAAAAAAAAAAAAAAAACz0ZOLuuhEYi807ZXTdhbqhLaS2/t9wLifJnnNYwiw79d75QYIZ6M/aYC1h9nCzCjZ7pGUpAuNnkUhnIXM3PjrA=="
	if text := base64.StdEncoding.EncodeToString(got.Data); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	if back := must(encryption.DecryptAs[string](t.Context(), w.keys, got)); back != "test" {
		t.Error(back)
	}
}

// Prose test 13, "Unique Index on keyAltNames".
func TestProseUniqueIndex(t *testing.T) {
	w := start(t, encryption.Options{})
	if err := w.keys.CreateIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	named := func(name string) (bson.UUID, error) {
		return w.keys.CreateDataKey(t.Context(), "local", encryption.DataKeyOptions{AltNames: []string{name}})
	}
	def := must(named("def"))
	// Case 1: createDataKey.
	must(named("abc"))
	for _, name := range []string{"abc", "def"} {
		if _, err := named(name); !errors.Is(err, mongoerr.ErrDuplicateKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Case 2: addKeyAltName.
	id := must(w.keys.CreateDataKey(t.Context(), "local"))
	if k, err := w.keys.AddKeyAltName(t.Context(), id, "ghi"); err != nil || len(k.AltNames) != 0 {
		t.Error(k, err)
	}
	if k, err := w.keys.AddKeyAltName(t.Context(), id, "ghi"); err != nil || len(k.AltNames) != 1 {
		t.Error(k, err)
	}
	if _, err := w.keys.AddKeyAltName(t.Context(), id, "def"); !errors.Is(err, mongoerr.ErrDuplicateKey) {
		t.Error(err)
	}
	if k, err := w.keys.AddKeyAltName(t.Context(), def, "def"); err != nil || len(k.AltNames) != 1 {
		t.Error(k, err)
	}
}

func TestNewErrors(t *testing.T) {
	client, err := allium.Open("mongodb://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	good := encryption.Options{KeyOptions: encryption.KeyOptions{KeyVaultClient: client, KeyVault: "a.b", KMS: kms.Providers{"local": kms.Local{Key: localMaster}}}}
	with := func(f func(*encryption.Options)) encryption.Options {
		o := good
		f(&o)
		return o
	}
	for _, c := range []struct {
		o    encryption.Options
		want string
	}{
		{with(func(o *encryption.Options) { o.KeyVaultClient = nil }), "KeyVaultClient is nil"},
		{with(func(o *encryption.Options) { o.KeyVault = "a" }), `KeyVault is "a"`},
		{with(func(o *encryption.Options) { o.KeyVault = ".a" }), `KeyVault is ".a"`},
		{with(func(o *encryption.Options) { o.KeyVault = "a." }), `KeyVault is "a."`},
		{with(func(o *encryption.Options) { o.KMS = nil }), "no key service"},
		{with(func(o *encryption.Options) { o.KMS = kms.Providers{"local": kms.Local{Key: localMaster[:5]}} }), "5 bytes"},
		{with(func(o *encryption.Options) { o.KeyExpiration = new(-time.Second) }), "KeyExpiration is -1s"},
		{with(func(o *encryption.Options) { o.Timeout = new(-time.Second) }), "Timeout is -1s"},
	} {
		if _, err := encryption.New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if k, err := encryption.New(good); err != nil || k.Close() != nil {
		t.Error(err)
	}
}

// TestAlgorithms encrypts and decrypts with each of them, and looks at the errors of wrong options.
func TestAlgorithms(t *testing.T) {
	w := start(t, encryption.Options{})
	id := must(w.keys.CreateDataKey(t.Context(), "local"))
	contention := new(int64(4))
	for _, o := range []encryption.EncryptOptions{
		{Algorithm: encryption.Deterministic}, {Algorithm: encryption.Random}, {Algorithm: encryption.Unindexed},
		{Algorithm: encryption.Indexed, Contention: contention},
		{Algorithm: encryption.String, Contention: contention, Text: &encryption.TextOptions{
			Prefix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 4}, Suffix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 4},
		}},
		{Algorithm: encryption.String, Contention: contention, Text: &encryption.TextOptions{
			CaseSensitive: true, Substring: &encryption.SubstringOptions{MaxLength: 20, MinQueryLength: 2, MaxQueryLength: 4},
		}},
	} {
		o.KeyID = &id
		b, err := w.keys.Encrypt(t.Context(), "secret text", o)
		if err != nil {
			t.Errorf("%s: %v", o.Algorithm, err)
			continue
		}
		if bytes.Contains(b.Data, []byte("secret")) {
			t.Errorf("%s: the value is readable", o.Algorithm)
		}
		if got, err := encryption.DecryptAs[string](t.Context(), w.keys, b); err != nil || got != "secret text" {
			t.Errorf("%s: %q, %v", o.Algorithm, got, err)
		}
	}
	o := encryption.EncryptOptions{Algorithm: encryption.Range, KeyID: &id, Contention: contention, Range: &encryption.RangeOptions{Min: 0, Max: 99}}
	if got, err := encryption.DecryptAs[int](t.Context(), w.keys, must(w.keys.Encrypt(t.Context(), 42, o))); err != nil || got != 42 {
		t.Error(got, err)
	}
	for _, c := range []struct {
		value any
		o     encryption.EncryptOptions
		want  string
	}{
		{"x", encryption.EncryptOptions{}, "algorithm or index type required"},
		{"x", encryption.EncryptOptions{Algorithm: encryption.Random}, "either key id or key alt name required"},
		{nil, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}, "BSON type invalid for encryption"},
		{1.5, encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id}, "BSON type invalid for deterministic encryption"},
		{func() {}, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}, "func()"},
		{"x", encryption.EncryptOptions{Algorithm: encryption.Range, KeyID: &id, Contention: contention, Range: &encryption.RangeOptions{Min: func() {}}}, "Range.Min"},
		{"x", encryption.EncryptOptions{Algorithm: encryption.Random, KeyAltName: "none"}, "not all keys requested were satisfied"},
	} {
		_, err := w.keys.Encrypt(t.Context(), c.value, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "encrypt: ") {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if _, err := encryption.DecryptAs[int](t.Context(), w.keys, must(w.keys.Encrypt(t.Context(), "secret", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}))); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// TestKeyCache counts how often the key vault is asked.
func TestKeyCache(t *testing.T) {
	w := start(t, encryption.Options{})
	id := must(w.keys.CreateDataKey(t.Context(), "local"))
	o := encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}
	w.commands = nil
	for range 5 {
		must(w.keys.Encrypt(t.Context(), 1, o))
	}
	if len(w.commands) != 1 || w.commands[0] != "find" {
		t.Errorf("commands %v", w.commands)
	}
}

// TestClosed calls every method of a closed Client.
func TestClosed(t *testing.T) {
	w := start(t, encryption.Options{})
	ctx := t.Context()
	id := must(w.keys.CreateDataKey(ctx, "local"))
	o := encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}
	secret := must(w.keys.Encrypt(ctx, 1, o))
	sealed := must(encryption.Seal(ctx, w.keys, 1, o))
	w.commands = nil
	for range 2 {
		if err := w.keys.Close(); err != nil {
			t.Error(err)
		}
	}
	db := w.client.Database("db")
	wanted := encryption.CollectionOptions{Provider: "local", Create: allium.CreateCollectionOptions{EncryptedFields: ssnField(nil)}}
	calls := map[string]func(c *encryption.Client) error{
		"Encrypt": func(c *encryption.Client) error { _, err := c.Encrypt(ctx, 1, o); return err },
		"EncryptExpression": func(c *encryption.Client) error {
			_, err := c.EncryptExpression(ctx, bson.D{{Key: "$and", Value: bson.A{bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: int32(1)}}}}}}},
				encryption.EncryptOptions{Algorithm: encryption.Range, Query: encryption.RangeQuery, KeyID: &id, Contention: new(int64(0)),
					Range: &encryption.RangeOptions{Min: int32(0), Max: int32(9)}})
			return err
		},
		"Decrypt":   func(c *encryption.Client) error { _, err := c.Decrypt(ctx, secret); return err },
		"DecryptAs": func(c *encryption.Client) error { _, err := encryption.DecryptAs[int](ctx, c, secret); return err },
		"Seal":      func(c *encryption.Client) error { _, err := encryption.Seal(ctx, c, 1, o); return err },
		"Open":      func(c *encryption.Client) error { _, err := sealed.Open(ctx, c); return err },
		"Warm":      func(c *encryption.Client) error { return c.Warm(ctx) },
		"CreateDataKey": func(c *encryption.Client) error {
			_, err := c.CreateDataKey(ctx, "local")
			return err
		},
		"CreateIndex":      func(c *encryption.Client) error { return c.CreateIndex(ctx) },
		"Key":              func(c *encryption.Client) error { _, err := c.Key(ctx, id); return err },
		"KeyByAltName":     func(c *encryption.Client) error { _, err := c.KeyByAltName(ctx, "a"); return err },
		"DeleteKey":        func(c *encryption.Client) error { _, err := c.DeleteKey(ctx, id); return err },
		"AddKeyAltName":    func(c *encryption.Client) error { _, err := c.AddKeyAltName(ctx, id, "a"); return err },
		"RemoveKeyAltName": func(c *encryption.Client) error { _, err := c.RemoveKeyAltName(ctx, id, "a"); return err },
		"RewrapManyDataKey": func(c *encryption.Client) error {
			_, err := c.RewrapManyDataKey(ctx, bson.D{})
			return err
		},
		"CreateEncryptedCollection": func(c *encryption.Client) error {
			_, err := c.CreateEncryptedCollection(ctx, db, "c", wanted)
			return err
		},
		"Keys": func(c *encryption.Client) error {
			for _, err := range c.Keys(ctx) {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		err := call(w.keys)
		if !errors.Is(err, mongoerr.ErrClientClosed) || strings.Count(err.Error(), "closed") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(w.commands) > 0 {
		t.Errorf("commands %v", w.commands)
	}
	client := reflect.TypeFor[*encryption.Client]()
	for i := range client.NumMethod() {
		if name := client.Method(i).Name; calls[name] == nil && name != "Close" {
			t.Errorf("%s is not tried", name)
		}
	}
}

// TestWarm fetches data keys before they are needed.
func TestWarm(t *testing.T) {
	ctx := t.Context()
	p, all, server := startServices(t)
	var ids []bson.UUID
	for provider, key := range masterKeys {
		ids = append(ids, must(createKey(t, p.keys, provider, key)))
	}
	for _, some := range [][]bson.UUID{nil, ids, ids[:2]} {
		client, events := p.open(allium.ClientOptions{})
		all.KeyVaultClient = client
		keys := p.encryption(encryption.Options{KeyOptions: all})
		if err := keys.Warm(ctx, some...); err != nil {
			t.Fatal(err)
		}
		if some == nil {
			some = ids
		}
		finds, requests := events.count("find"), len(server.Requests())
		for _, id := range some {
			must(keys.Encrypt(ctx, 1, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}))
		}
		if events.count("find") != finds || len(server.Requests()) != requests {
			t.Errorf("%d finds and %d requests after %d keys were fetched", events.count("find")-finds, len(server.Requests())-requests, len(some))
		}
	}
}

// TestKeyExpiration is the time that keys are kept.
func TestKeyExpiration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var finds int
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		client := must(allium.Open(d.URI(), allium.ClientOptions{Dialer: d, CommandMonitor: &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
			if e.CommandName == "find" {
				finds++
			}
		}}}))
		defer client.Close(context.Background())
		for _, c := range []struct {
			life *time.Duration
			want int
		}{{nil, 2}, {new(time.Duration(0)), 1}, {new(time.Hour), 1}} {
			keys := must(encryption.New(encryption.Options{KeyOptions: encryption.KeyOptions{KeyVaultClient: client, KeyVault: "k.v", KMS: kms.Providers{"local": kms.Local{Key: localMaster}}, KeyExpiration: c.life}}))
			o := encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: new(must(keys.CreateDataKey(t.Context(), "local")))}
			finds = 0
			must(keys.Encrypt(t.Context(), 1, o))
			time.Sleep(crypt.DefaultKeyExpiration - time.Second)
			must(keys.Encrypt(t.Context(), 1, o))
			time.Sleep(time.Second)
			must(keys.Encrypt(t.Context(), 1, o))
			if finds != c.want {
				t.Errorf("life %v: %d finds, want %d", c.life, finds, c.want)
			}
			keys.Close()
		}
	})
}

func TestKeyManagement(t *testing.T) {
	w := start(t, encryption.Options{})
	ctx := t.Context()
	id := must(w.keys.CreateDataKey(ctx, "local", encryption.DataKeyOptions{AltNames: []string{"b", "a"}}))
	k := must(w.keys.Key(ctx, id))
	if k.ID != id || strings.Join(k.AltNames, "") != "ab" || k.Provider != "local" || k.MasterKey != (kms.LocalKey{}) || k.Created.IsZero() || !k.Created.Equal(k.Updated) || k.Raw == nil {
		t.Errorf("%+v", k)
	}
	if _, err := w.keys.Key(ctx, bson.UUID{1}); !errors.Is(err, mongoerr.ErrNoDocuments) {
		t.Error(err)
	}
	if _, err := w.keys.KeyByAltName(ctx, "c"); !errors.Is(err, mongoerr.ErrNoDocuments) {
		t.Error(err)
	}
	if k, err := w.keys.AddKeyAltName(ctx, bson.UUID{1}, "c"); k != nil || err != nil {
		t.Error(k, err)
	}
	for _, name := range []string{"a", "none", "b"} {
		must(w.keys.RemoveKeyAltName(ctx, id, name))
	}
	if k := must(w.keys.Key(ctx, id)); !k.Raw.Lookup("keyAltNames").IsZero() {
		t.Errorf("%s", k.Raw)
	}
	for _, names := range [][]string{{"x", "x"}, {""}} {
		if _, err := w.keys.CreateDataKey(ctx, "local", encryption.DataKeyOptions{AltNames: names}); err == nil {
			t.Errorf("%q: no error", names)
		}
	}
	for provider, want := range map[string]string{"aws": "aws", "pgp": "pgp", "local:x": "not configured"} {
		if _, err := w.keys.CreateDataKey(ctx, provider); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", provider, err)
		}
	}
	if _, err := w.keys.CreateDataKey(ctx, "local", encryption.DataKeyOptions{Material: make([]byte, 3)}); err == nil || !strings.Contains(err.Error(), "keyMaterial should have length 96") {
		t.Error(err)
	}
	n := 0
	for range w.keys.Keys(ctx) {
		n++
	}
	if n != 1 {
		t.Errorf("%d keys", n)
	}
	if res := must(w.keys.DeleteKey(ctx, id)); res.DeletedCount != 1 {
		t.Error(res)
	}
}

// TestAltNamesAreTexts: alternative names that look like operators, fields, variables or patterns
// are texts, in filters and in the pipeline that removes one.
func TestAltNamesAreTexts(t *testing.T) {
	w := start(t, encryption.Options{})
	ctx := t.Context()
	names := []string{"$keyAltNames", "$$this", "$$ROOT", "$$REMOVE", "$", "$$", "$ne", "$literal", "/./", ".*", "a.b", "$a b"}
	id := must(w.keys.CreateDataKey(ctx, "local", encryption.DataKeyOptions{AltNames: append([]string{"stays"}, names...)}))
	must(w.keys.CreateDataKey(ctx, "local", encryption.DataKeyOptions{AltNames: []string{"other"}}))
	for i, name := range names {
		if k, err := w.keys.KeyByAltName(ctx, name); err != nil || k.ID != id {
			t.Fatalf("%q: %v, %v", name, k, err)
		}
		must(w.keys.RemoveKeyAltName(ctx, id, name))
		if k := must(w.keys.Key(ctx, id)); len(k.AltNames) != len(names)-i || slices.Contains(k.AltNames, name) || !slices.Contains(k.AltNames, "stays") {
			t.Fatalf("%q removed: %q are left", name, k.AltNames)
		}
		if _, err := w.keys.KeyByAltName(ctx, name); !errors.Is(err, mongoerr.ErrNoDocuments) {
			t.Errorf("%q removed: %v", name, err)
		}
	}
	must(w.keys.RemoveKeyAltName(ctx, id, "stays"))
	must(w.keys.AddKeyAltName(ctx, id, "$$ROOT"))
	must(w.keys.RemoveKeyAltName(ctx, id, "$$ROOT"))
	if k := must(w.keys.Key(ctx, id)); !k.Raw.Lookup("keyAltNames").IsZero() {
		t.Errorf("the last name is removed: %s", k.Raw)
	}
}

func TestRewrap(t *testing.T) {
	other := bytes.Repeat([]byte{7}, 96)
	w := start(t, encryption.Options{KeyOptions: encryption.KeyOptions{KMS: kms.Providers{"local": kms.Local{Key: localMaster}, "local:other": kms.Local{Key: other}}}})
	ctx := t.Context()
	if res, err := w.keys.RewrapManyDataKey(ctx, bson.D{}); err != nil || res.Acknowledged {
		t.Error(res, err)
	}
	var secrets []bson.Binary
	for i := range 3 {
		id := must(w.keys.CreateDataKey(ctx, "local"))
		secrets = append(secrets, must(w.keys.Encrypt(ctx, i, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})))
	}
	if res, err := w.keys.RewrapManyDataKey(ctx, bson.D{}, encryption.RewrapOptions{Provider: "local:other"}); err != nil || res.ModifiedCount != 3 {
		t.Error(res, err)
	}
	if _, err := w.keys.RewrapManyDataKey(ctx, bson.D{}, encryption.RewrapOptions{MasterKey: kms.LocalKey{}}); err == nil {
		t.Error("a master key without provider")
	}
	// Only who has the other master key can read them now.
	for _, c := range []struct {
		providers kms.Providers
		ok        bool
	}{{kms.Providers{"local:other": kms.Local{Key: other}}, true}, {kms.Providers{"local": kms.Local{Key: localMaster}}, false}} {
		keys := w.more(t, encryption.Options{KeyOptions: encryption.KeyOptions{KMS: c.providers}})
		for i, s := range secrets {
			got, err := encryption.DecryptAs[int](ctx, keys, s)
			if c.ok && (err != nil || got != i) || !c.ok && (err == nil || !strings.Contains(err.Error(), "local:other")) {
				t.Errorf("%d: %d, %v", i, got, err)
			}
		}
	}
}

// TestInTransaction encrypts while the context carries the session of a transaction, also of
// another client.
func TestInTransaction(t *testing.T) {
	w := start(t, encryption.Options{})
	id := must(w.keys.CreateDataKey(t.Context(), "local"))
	other := start(t, encryption.Options{})
	for _, client := range []*allium.Client{w.client, other.client} {
		session := must(client.StartSession())
		ctx := allium.WithSession(t.Context(), session)
		if err := session.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		keys := w.more(t, encryption.Options{})
		if _, err := keys.Encrypt(ctx, 1, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}); err != nil {
			t.Error(err)
		}
		session.End(t.Context())
	}
}

// TestKeysOnFewerMembers: a data key that was written or changed on fewer members than its write
// concern asks for is known to who did it.
func TestKeysOnFewerMembers(t *testing.T) {
	w := start(t, encryption.Options{})
	ctx := t.Context()
	missed := func(command string) {
		must(w.client.Database("admin").RunCommand(ctx, bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{command}}, {Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting"}}}}}}))
	}
	check := func(what string, err error) {
		if !errors.As(err, new(*mongoerr.WriteConcernError)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	missed("insert")
	id, err := w.keys.CreateDataKey(ctx, "local")
	check("CreateDataKey", err)
	if k, err := w.keys.Key(ctx, id); err != nil || k.ID != id {
		t.Fatalf("the key %s is %v, %v", id, k, err)
	}
	missed("findAndModify")
	k, err := w.keys.AddKeyAltName(ctx, id, "a")
	check("AddKeyAltName", err)
	if k == nil || k.ID != id || len(k.AltNames) > 0 {
		t.Errorf("the key before was %v", k)
	}
	missed("findAndModify")
	k, err = w.keys.AddKeyAltName(ctx, bson.NewUUID(), "b")
	check("AddKeyAltName of no key", err)
	if k != nil {
		t.Errorf("no key was %v", k)
	}
	missed("insert")
	fields, err := w.keys.CreateEncryptedCollection(ctx, w.client.Database("db"), "c",
		encryption.CollectionOptions{Provider: "local", Create: allium.CreateCollectionOptions{EncryptedFields: ssnField(nil)}})
	check("CreateEncryptedCollection", err)
	if got := fields.Lookup("fields", "0", "keyId"); got.Type != bson.TypeBinary {
		t.Errorf("the fields are %s", fields)
	}
}
