package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/event"
	"allium/internal/norace"
	"allium/mongotest"
)

// encrypted is a deployment with a client that encrypts by itself, and one that does not.
type encrypted struct {
	d       *mongotest.Deployment
	plain   *allium.Client
	client  *allium.Client
	keys    *encryption.Client
	id      bson.UUID
	mu      sync.Mutex
	events  []*event.CommandStarted // of client
	replies []bson.Raw
}

// schemaOf returns a JSON schema with the field ssn encrypted with an algorithm.
func schemaOf(id bson.UUID, algorithm encryption.Algorithm) bson.D {
	return bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{{Key: "ssn", Value: bson.D{{Key: "encrypt", Value: bson.D{
		{Key: "keyId", Value: bson.A{id}}, {Key: "bsonType", Value: "string"}, {Key: "algorithm", Value: string(algorithm)},
	}}}}}}}
}

func startAuto(t *testing.T, o encryption.AutoOptions, more ...func(*allium.ClientOptions)) *encrypted {
	t.Helper()
	e := &encrypted{d: mongotest.Start(t, mongotest.ReplicaSet(1))}
	e.plain = must(allium.Open(e.d.URI()))
	t.Cleanup(func() { e.plain.Close(context.Background()) })
	e.keys = must(encryption.New(encryption.Options{KeyOptions: encryption.KeyOptions{KeyVaultClient: e.plain, KeyVault: "keyvault.datakeys", KMS: kms.Providers{"local": kms.Local{Key: localMaster}}}}))
	t.Cleanup(func() { e.keys.Close() })
	e.id = must(e.keys.CreateDataKey(t.Context(), "local", encryption.DataKeyOptions{AltNames: []string{"name"}}))
	o.KeyVault, o.KMS = "keyvault.datakeys", kms.Providers{"local": kms.Local{Key: localMaster}}
	if o.Schemas == nil {
		o.Schemas = map[string]any{"db.coll": schemaOf(e.id, encryption.Deterministic)}
	}
	co := allium.ClientOptions{Encryption: encryption.Auto(o), CommandMonitor: &event.CommandMonitor{
		Started: func(_ context.Context, s *event.CommandStarted) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.events = append(e.events, s)
		},
		Succeeded: func(_ context.Context, s *event.CommandSucceeded) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.replies = append(e.replies, bytes.Clone(s.Reply))
		},
	}}
	for _, f := range more {
		f(&co)
	}
	e.client = must(allium.Open(e.d.URI(), co))
	t.Cleanup(func() { e.client.Close(context.Background()) })
	return e
}

func (e *encrypted) started() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for _, s := range e.events {
		out = append(out, s.CommandName)
	}
	return out
}

func TestAuto(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{})
	ctx := t.Context()
	coll := e.client.Database("db").Collection("coll")
	doc := bson.D{{Key: "_id", Value: int32(1)}, {Key: "ssn", Value: "457-55-5462"}, {Key: "name", Value: "Jon"}}
	must(coll.InsertOne(ctx, doc))
	must(coll.InsertMany(ctx, []bson.D{{{Key: "_id", Value: int32(2)}, {Key: "ssn", Value: "111-11-1111"}}, {{Key: "_id", Value: int32(3)}}}))

	stored := must(allium.CollectionOf[bson.Raw](e.plain.Database("db"), "coll").FindOne(ctx, bson.D{{Key: "_id", Value: 1}}))
	b, ok := stored.Lookup("ssn").Binary()
	if !ok || b.Subtype != bson.BinaryEncrypted || b.Data[0] != 1 {
		t.Fatalf("stored %s", stored)
	}
	if plain := must(encryption.DecryptAs[string](ctx, e.keys, b)); plain != "457-55-5462" {
		t.Error(plain)
	}
	for _, filter := range []bson.D{{{Key: "ssn", Value: "457-55-5462"}}, {{Key: "ssn", Value: bson.D{{Key: "$in", Value: bson.A{"457-55-5462", "x"}}}}}, {{Key: "name", Value: "Jon"}}} {
		got, err := coll.FindOne(ctx, filter)
		if err != nil || got.String() != doc.String() {
			t.Errorf("%s: %s, %v", filter, got, err)
		}
	}
	if n := must(coll.CountDocuments(ctx, bson.D{{Key: "ssn", Value: "111-11-1111"}})); n != 1 {
		t.Errorf("count %d", n)
	}
	if res := must(coll.UpdateOne(ctx, bson.D{{Key: "ssn", Value: "111-11-1111"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "ssn", Value: "222-22-2222"}}}})); res.ModifiedCount != 1 {
		t.Error(res)
	}
	list := must(allium.Distinct[string](ctx, coll, "ssn", bson.D{}))
	slices.Sort(list)
	if strings.Join(list, " ") != "222-22-2222 457-55-5462" {
		t.Error(list)
	}
	if got := must(coll.FindOneAndDelete(ctx, bson.D{{Key: "ssn", Value: "222-22-2222"}})); got[1].Value != "222-22-2222" {
		t.Error(got)
	}
	all := must(must(coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(1))})).All(ctx))
	if len(all) != 2 || all[0][1].Value != "457-55-5462" {
		t.Error(all)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.events) < 8 {
		t.Errorf("%d commands", len(e.events))
	}
	for _, s := range e.events {
		for _, secret := range []string{"457-55", "111-11", "222-22"} {
			if bytes.Contains(s.Command, []byte(secret)) {
				t.Errorf("an event shows the value: %s", s.Command)
			}
		}
	}
	for _, r := range e.replies {
		if bytes.Contains(r, []byte("457-55")) {
			t.Errorf("an event shows the value: %s", r)
		}
	}
}

// TestAutoRefuses is about commands that must not be sent.
func TestAutoRefuses(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{})
	ctx := t.Context()
	coll := e.client.Database("db").Collection("coll")
	before := len(e.started())
	_, err := coll.Find(ctx, bson.D{{Key: "ssn", Value: bson.D{{Key: "$gt", Value: "4"}}}})
	if err == nil || !strings.Contains(err.Error(), "ssn") {
		t.Error(err)
	}
	_, err = e.client.Database("db").RunCommand(ctx, bson.D{{Key: "mapReduce", Value: "coll"}})
	if err == nil || !strings.Contains(err.Error(), "command not supported for auto encryption: mapReduce") {
		t.Error(err)
	}
	if _, err := e.client.Database("db").Aggregate(ctx, bson.A{bson.D{{Key: "$currentOp", Value: bson.D{}}}}); err == nil || !strings.Contains(err.Error(), "non-collection command not supported for auto encryption: aggregate") {
		t.Error(err)
	}
	if n := len(e.started()); n != before {
		t.Errorf("commands %v", e.started())
	}
	if _, err := e.client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}); err != nil {
		t.Error(err)
	}
}

// TestAutoElsewhere sends values from other databases towards the encrypted collection.
func TestAutoElsewhere(t *testing.T) {
	ctx := t.Context()
	e := startAuto(t, encryption.AutoOptions{})
	must(e.plain.Database("db2").Collection("source").InsertOne(ctx, bson.D{{Key: "ssn", Value: "457-55-5462"}}))
	must(e.plain.Database("db2").Collection("coll").InsertOne(ctx, bson.D{}))
	source := e.client.Database("db2").Collection("source")
	target := bson.D{{Key: "db", Value: "db"}, {Key: "coll", Value: "coll"}}
	for _, stage := range []bson.D{
		{{Key: "$merge", Value: bson.D{{Key: "into", Value: target}}}},
		{{Key: "$merge", Value: target}},
		{{Key: "$out", Value: target}},
		{{Key: "$lookup", Value: bson.D{{Key: "from", Value: target}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "ssn", Value: "457-55-5462"}}}}}}, {Key: "as", Value: "m"}}}},
		{{Key: "$unionWith", Value: append(slices.Clone(target), bson.E{Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "ssn", Value: "457-55-5462"}}}}}})}},
	} {
		_, err := source.Aggregate(ctx, bson.A{bson.D{{Key: "$addFields", Value: bson.D{{Key: "ssn", Value: "457-55-5462"}}}}, stage})
		if _, ok := errors.AsType[*encryption.RefusedError](err); !ok {
			t.Errorf("%s: %v", stage, err)
		}
	}
	// What is not encrypted is written, whatever the database.
	elsewhere := bson.D{{Key: "db", Value: "db3"}, {Key: "coll", Value: "copy"}}
	if _, err := source.Aggregate(ctx, bson.A{bson.D{{Key: "$out", Value: elsewhere}}}); err != nil {
		t.Error(err)
	}
	if n := must(e.plain.Database("db3").Collection("copy").CountDocuments(ctx, bson.D{})); n != 1 {
		t.Errorf("%d documents were copied", n)
	}
	if n := must(e.plain.Database("db").Collection("coll").CountDocuments(ctx, bson.D{})); n != 0 {
		t.Errorf("%d documents are in the encrypted collection", n)
	}
}

func TestAutoRemoteSchema(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{Schemas: map[string]any{}})
	ctx := t.Context()
	if err := e.plain.Database("db").CreateCollection(ctx, "coll", allium.CreateCollectionOptions{Validator: bson.D{{Key: "$jsonSchema", Value: schemaOf(e.id, encryption.Random)}}}); err != nil {
		t.Fatal(err)
	}
	if err := e.plain.Database("db").CreateCollection(ctx, "view", allium.CreateCollectionOptions{ViewOn: "coll"}); err != nil {
		t.Fatal(err)
	}
	coll := e.client.Database("db").Collection("coll")
	for i := range 3 {
		must(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: int32(i)}, {Key: "ssn", Value: "x"}}))
	}
	stored := must(allium.CollectionOf[bson.Raw](e.plain.Database("db"), "coll").FindOne(ctx, bson.D{}))
	if b, ok := stored.Lookup("ssn").Binary(); !ok || b.Subtype != 6 || b.Data[0] != 2 {
		t.Errorf("stored %s", stored)
	}
	_, err := e.client.Database("db").Collection("view").FindOne(ctx, bson.D{})
	if refused, ok := errors.AsType[*encryption.RefusedError](err); !ok || refused.Namespace != "db.view" || refused.Reason != "cannot auto encrypt a view: db.view" {
		t.Error(err)
	}
	// The schema and the key are asked for once.
	lists, finds := 0, 0
	for _, name := range e.started() {
		switch name {
		case "listCollections":
			lists++
		case "find":
			finds++
		}
	}
	if lists != 2 || finds != 1 {
		t.Errorf("commands %v", e.started())
	}
}

// TestUnencryptedVectors has commands that are sent as they are, or refused, as libmongocrypt does
// it.
func TestUnencryptedVectors(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{})
	must(e.plain.Database("db").RunCommand(t.Context(), bson.D{{Key: "create", Value: "v"}, {Key: "viewOn", Value: "other"}}))
	for _, name := range []string{"bypassed", "db", "unsupported", "view"} {
		doc, err := bson.ParseExtJSON(must(os.ReadFile("testdata/" + name + ".json")))
		if err != nil {
			t.Fatal(err)
		}
		for what, v := range doc.All() {
			q := bson.Raw(v.Value)
			db, _ := q.Lookup("question", "db").StringValue()
			cmd, _ := q.Lookup("question", "cmd").Document()
			_, err := e.client.Database(db).RunCommand(t.Context(), cmd)
			want, fails := q.Lookup("answer", "error").StringValue()
			if fails != isRefused(err) || fails && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", what, err, want)
			}
			last := e.started()
			if sent := len(last) > 0 && last[len(last)-1] == cmd.String()[2:2+strings.IndexByte(cmd.String()[2:], '"')]; sent == fails {
				t.Errorf("%s: sent: %v, commands %q", what, sent, last)
			}
		}
	}
}

func TestAutoBypass(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{BypassEncryption: true})
	ctx := t.Context()
	secret := must(e.keys.Encrypt(ctx, "secret", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &e.id}))
	coll := e.client.Database("db").Collection("coll")
	must(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "ssn", Value: secret}, {Key: "plain", Value: "x"}}))
	if got := must(coll.FindOne(ctx, bson.D{})); got[1].Value != "secret" || got[2].Value != "x" {
		t.Error(got)
	}
	if slices.Contains(e.started(), "listCollections") {
		t.Error(e.started())
	}
}

func TestAutoTampered(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{})
	ctx := t.Context()
	secret := must(e.keys.Encrypt(ctx, "secret", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &e.id}))
	secret.Data[60] ^= 1
	must(e.plain.Database("db").Collection("other").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.D{{Key: "b", Value: secret}}}}))
	_, err := e.client.Database("db").Collection("other").FindOne(ctx, bson.D{})
	if !errors.Is(err, encryption.ErrAuthentication) || !strings.Contains(err.Error(), "a.b") {
		t.Error(err)
	}
	if _, err := e.client.Database("db").Collection("coll").FindOne(ctx, bson.D{}); err == nil {
		t.Error("no error of an empty collection")
	}
}

// TestAutoBatches has bulk writes split at the lesser size that encrypted ones have.
func TestAutoBatches(t *testing.T) {
	norace.Skip(t, "it fills messages")
	e := startAuto(t, encryption.AutoOptions{Schemas: map[string]any{"db.coll": bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{
		{Key: "ssn", Value: bson.D{{Key: "encrypt", Value: bson.D{{Key: "keyId", Value: bson.A{bson.UUID{1}}}, {Key: "bsonType", Value: "string"}, {Key: "algorithm", Value: string(encryption.Random)}}}}},
	}}}}})
	ctx := t.Context()
	coll := e.client.Database("db").Collection("coll")
	big := strings.Repeat("a", 2<<20-100)
	inserts := func() int {
		n := 0
		for _, name := range e.started() {
			if name == "insert" {
				n++
			}
		}
		return n
	}
	must(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: "one"}, {Key: "x", Value: strings.Repeat("a", 3<<20)}}))
	must(coll.InsertMany(ctx, []bson.D{{{Key: "_id", Value: "two"}, {Key: "x", Value: big}}, {{Key: "_id", Value: "three"}, {Key: "x", Value: big}}}))
	if n := inserts(); n != 3 {
		t.Errorf("%d inserts, want 3", n)
	}
	res := must(coll.BulkWrite(ctx, []allium.WriteModel{
		coll.InsertOneModel(bson.D{{Key: "_id", Value: 4}, {Key: "x", Value: big}}), coll.InsertOneModel(bson.D{{Key: "_id", Value: 5}, {Key: "x", Value: big}}),
	}))
	if n := inserts(); n != 5 || res.InsertedCount != 2 {
		t.Errorf("%d inserts, want 5; %+v", n, res)
	}
}

// TestAutoUnboundedPool has the client ask for keys and schemas itself.
func TestAutoUnboundedPool(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{Schemas: map[string]any{}}, func(o *allium.ClientOptions) { o.MaxPoolSize = new(0) })
	ctx := t.Context()
	if err := e.plain.Database("db").CreateCollection(ctx, "coll", allium.CreateCollectionOptions{Validator: bson.D{{Key: "$jsonSchema", Value: schemaOf(e.id, encryption.Deterministic)}}}); err != nil {
		t.Fatal(err)
	}
	coll := e.client.Database("db").Collection("coll")
	must(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "ssn", Value: "x"}}))
	if got := must(coll.FindOne(ctx, bson.D{{Key: "ssn", Value: "x"}})); got[1].Value != "x" {
		t.Error(got)
	}
}

// TestAutoSmallPool has one connection for everything: nothing may wait for itself (prose test 9,
// "Deadlock Tests").
func TestAutoSmallPool(t *testing.T) {
	for _, separate := range []bool{false, true} {
		o := encryption.AutoOptions{Schemas: map[string]any{}}
		e := startAuto(t, o, func(o *allium.ClientOptions) { o.MaxPoolSize = new(1) })
		_ = separate
		ctx := t.Context()
		if err := e.plain.Database("db").CreateCollection(ctx, "coll", allium.CreateCollectionOptions{Validator: bson.D{{Key: "$jsonSchema", Value: schemaOf(e.id, encryption.Deterministic)}}}); err != nil {
			t.Fatal(err)
		}
		coll := e.client.Database("db").Collection("coll")
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: int32(i)}, {Key: "ssn", Value: "x"}}); err != nil {
					t.Error(err)
				}
				if got, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: int32(i)}}); err != nil || got[1].Value != "x" {
					t.Error(got, err)
				}
			})
		}
		wg.Wait()
	}
}

func TestAutoTransaction(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{})
	ctx := t.Context()
	coll := e.client.Database("db").Collection("coll")
	session := must(e.client.StartSession())
	defer session.End(ctx)
	err := session.Transact(ctx, func(ctx context.Context) error {
		if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "ssn", Value: "x"}}); err != nil {
			return err
		}
		_, err := coll.FindOne(ctx, bson.D{{Key: "ssn", Value: "x"}})
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAutoOptions(t *testing.T) {
	good := encryption.AutoOptions{KeyOptions: encryption.KeyOptions{KeyVault: "a.b", KMS: kms.Providers{"local": kms.Local{Key: localMaster}}}}
	fields := bson.D{{Key: "fields", Value: bson.A{}}}
	for want, f := range map[string]func(*encryption.AutoOptions){
		`KeyVault is ""`: func(o *encryption.AutoOptions) { o.KeyVault = "" },
		"no key service": func(o *encryption.AutoOptions) { o.KMS = nil },
		`schema of "x"`:  func(o *encryption.AutoOptions) { o.Schemas = map[string]any{"x": bson.D{}} },
		"is present in both": func(o *encryption.AutoOptions) {
			o.Schemas, o.EncryptedFields = map[string]any{"a.b": bson.D{}}, map[string]any{"a.b": fields}
		},
	} {
		o := good
		f(&o)
		if _, err := allium.Open("mongodb://localhost:1", allium.ClientOptions{Encryption: encryption.Auto(o)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	c, err := allium.Open("mongodb://localhost:1", allium.ClientOptions{Encryption: encryption.Auto(good)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The schemas of a bulk write of the client are those of its collections, although the command goes
// to the database admin.
func TestAutoClientBulkWrite(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{Schemas: map[string]any{}})
	ctx := t.Context()
	validator := bson.D{{Key: "$jsonSchema", Value: schemaOf(e.id, encryption.Deterministic)}}
	must(e.plain.Database("db").RunCommand(ctx, bson.D{{Key: "create", Value: "coll"}, {Key: "validator", Value: validator}}))
	must(e.client.BulkWrite(ctx, []allium.WriteModel{
		e.client.Database("db").Collection("coll").InsertOneModel(bson.D{{Key: "_id", Value: 1}, {Key: "ssn", Value: "457-55-5462"}}),
	}))
	stored := must(allium.CollectionOf[bson.Raw](e.plain.Database("db"), "coll").FindOne(ctx, bson.D{{Key: "_id", Value: 1}}))
	if b, ok := stored.Lookup("ssn").Binary(); !ok || b.Subtype != 6 {
		t.Errorf("stored %v", stored)
	}
	for _, cmd := range e.events {
		if bytes.Contains(cmd.Command, []byte("457-55")) {
			t.Errorf("%s is sent in plain", cmd.CommandName)
		}
	}
}

// The client that automatic encryption opens for itself has the settings of the program's, but no
// connections that are kept ready, also if the connection string asks for them.
func TestInternalClientMatches(t *testing.T) {
	var mu sync.Mutex
	var created []event.PoolOptions
	e := startAuto(t, encryption.AutoOptions{Schemas: map[string]any{}}, func(o *allium.ClientOptions) {
		o.MaxPoolSize, o.MinPoolSize, o.MaxConnecting = new(7), new(3), new(4)
		o.PoolMonitor = &event.PoolMonitor{PoolCreated: func(e *event.PoolCreated) {
			mu.Lock()
			defer mu.Unlock()
			created = append(created, e.Options)
		}}
	})
	must(e.client.Database("db").Collection("c").InsertOne(t.Context(), bson.D{}))
	mu.Lock()
	defer mu.Unlock()
	if len(created) != 2 {
		t.Fatalf("%d pools: %+v", len(created), created)
	}
	slices.SortFunc(created, func(a, b event.PoolOptions) int { return a.MinPoolSize - b.MinPoolSize })
	if created[0].MinPoolSize != 0 || created[1].MinPoolSize != 3 {
		t.Errorf("the minima are %d and %d", created[0].MinPoolSize, created[1].MinPoolSize)
	}
	if created[0].MinPoolSize = 3; created[0] != created[1] {
		t.Errorf("the pools are %+v and %+v", created[0], created[1])
	}
}

// Data keys are read and written with the concern of the majority, whatever the client's are.
func TestKeyVaultConcerns(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	concerns := map[string]int{}
	client := must(allium.Open(d.URI(), allium.ClientOptions{
		ReadConcern: &consistency.ReadConcern{Level: consistency.ReadLocal}, WriteConcern: &consistency.WriteConcern{W: 1},
		CommandMonitor: &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
			switch e.CommandName {
			case "find":
				level, _ := e.Command.Lookup("readConcern", "level").StringValue()
				concerns["read "+level]++
			case "insert", "update", "delete", "findAndModify":
				w, _ := e.Command.Lookup("writeConcern", "w").StringValue()
				concerns["write "+w]++
			}
		}},
	}))
	defer client.Close(t.Context())
	keys := must(encryption.New(encryption.Options{KeyOptions: encryption.KeyOptions{
		KeyVaultClient: client, KeyVault: "keyvault.datakeys", KMS: kms.Providers{"local": kms.Local{Key: localMaster}},
	}}))
	defer keys.Close()
	ctx := t.Context()
	id := must(keys.CreateDataKey(ctx, "local", encryption.DataKeyOptions{AltNames: []string{"a"}}))
	must(keys.Key(ctx, id))
	must(keys.KeyByAltName(ctx, "a"))
	must(keys.Encrypt(ctx, "x", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id}))
	must(keys.AddKeyAltName(ctx, id, "b"))
	must(keys.RemoveKeyAltName(ctx, id, "b"))
	must(keys.RewrapManyDataKey(ctx, bson.D{}))
	must(keys.DeleteKey(ctx, id))
	if concerns["read majority"] < 3 || concerns["write majority"] < 5 || len(concerns) != 2 {
		t.Errorf("the concerns are %v", concerns)
	}
}
