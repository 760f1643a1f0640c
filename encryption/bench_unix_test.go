//go:build unix

package encryption_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/mongotest"
)

// The cost of encryption, side by side with none (docs/performance-encryption.md):
//
//	go test ./encryption -run '^$' -bench Cost -count 5
//
// BenchmarkCostOfCommand is the client's part alone: what becomes of a command before it is sent.
// BenchmarkCostOfOperation is an operation on a mongotest replica set in the same process, the
// server's work included.

// benchField is a field in one kind of encryption.
type benchField struct {
	name   string
	schema func(key bson.UUID) encryption.Field // zero Algorithm: plain
	value  func(i int) any
	filter func(v any) bson.D
}

func equalTo(v any) bson.D { return bson.D{{Key: "f", Value: v}} }

func text(i int) any { return fmt.Sprintf("value %08d", i%100) }

// aged looks for ten neighbours.
func aged[T int32 | int64](v any) bson.D {
	n := v.(T)
	return bson.D{{Key: "f", Value: bson.D{{Key: "$gte", Value: n}, {Key: "$lt", Value: n + 10}}}}
}

type benchString struct {
	F string `bson:"f"`
}

type benchInt struct {
	F int32 `bson:"f"`
}

type benchLong struct {
	F int64 `bson:"f"`
}

var benchFields = []benchField{
	{"plain", nil, text, equalTo},
	{"deterministic", func(key bson.UUID) encryption.Field {
		return encryption.Field{Path: "f", Algorithm: encryption.Deterministic, KeyID: &key}
	}, text, equalTo},
	{"equality", func(key bson.UUID) encryption.Field {
		return encryption.Field{Path: "f", Algorithm: encryption.Indexed, KeyID: &key}
	}, text, equalTo},
	{"equality without contention", func(key bson.UUID) encryption.Field {
		return encryption.Field{Path: "f", Algorithm: encryption.Indexed, KeyID: &key, Contention: new(int64(0))}
	}, text, equalTo},
	{"plain range", nil, func(i int) any { return int32(i % 120) }, aged[int32]},
	{"range of 0 to 130", func(key bson.UUID) encryption.Field {
		return encryption.Field{Path: "f", Algorithm: encryption.Range, KeyID: &key, Range: &encryption.RangeOptions{Min: 0, Max: 130}}
	}, func(i int) any { return int32(i % 120) }, aged[int32]},
	{"range of all longs", func(key bson.UUID) encryption.Field {
		return encryption.Field{Path: "f", Algorithm: encryption.Range, KeyID: &key}
	}, func(i int) any { return int64(i % 120) }, aged[int64]},
	{"prefix of 2 to 10", func(key bson.UUID) encryption.Field {
		return encryption.Field{Path: "f", Algorithm: encryption.String, KeyID: &key,
			Text: &encryption.TextOptions{Prefix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 10}}}
	}, func(i int) any { return fmt.Sprintf("%02d and so on", i%100) }, func(v any) bson.D {
		return bson.D{{Key: "$expr", Value: bson.D{{Key: "$encStrStartsWith", Value: bson.D{{Key: "input", Value: "$f"}, {Key: "prefix", Value: v.(string)[:6]}}}}}}
	}},
}

// startBench starts a deployment with the collection db.c, and a client whose field f is as said.
func startBench(b *testing.B, f *benchField) (client, plain *allium.Client, auto encryption.AutoOptions) {
	b.Helper()
	ctx := b.Context()
	d := mongotest.Start(b, mongotest.ReplicaSet(1), mongotest.Version("9.0"))
	plain = must(allium.Open(d.URI()))
	b.Cleanup(func() { plain.Close(context.Background()) })
	if f.schema == nil {
		must(plain.Database("db").Collection("c").CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "f", Value: 1}}}))
		return plain, plain, auto
	}
	auto.KeyOptions = encryption.KeyOptions{KeyVault: "db.keys", KMS: localKMS(), KeyVaultClient: plain, KeyExpiration: new(time.Duration)}
	keys := must(encryption.New(encryption.Options{KeyOptions: auto.KeyOptions}))
	b.Cleanup(func() { keys.Close() })
	field := f.schema(must(keys.CreateDataKey(ctx, "local")))
	if field.Algorithm == encryption.Deterministic {
		auto.Schemas = map[string]any{"db.c": must(encryption.SchemaFor[benchString](field))}
		must(plain.Database("db").Collection("c").CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "f", Value: 1}}}))
	} else {
		fields := bson.Raw(nil)
		switch f.value(0).(type) {
		case string:
			fields = must(encryption.EncryptedFieldsFor[benchString](field))
		case int32:
			fields = must(encryption.EncryptedFieldsFor[benchInt](field))
		default:
			fields = must(encryption.EncryptedFieldsFor[benchLong](field))
		}
		auto.EncryptedFields = map[string]any{"db.c": fields}
		if err := plain.Database("db").CreateCollection(ctx, "c", allium.CreateCollectionOptions{EncryptedFields: fields}); err != nil {
			b.Fatal(err)
		}
	}
	client = must(allium.Open(d.URI(), allium.ClientOptions{Encryption: encryption.Auto(auto)}))
	b.Cleanup(func() { client.Close(context.Background()) })
	return client, plain, auto
}

func processorTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs f, and reports processor time and operations per second, too.
func measure(b *testing.B, f func(i int)) {
	b.Helper()
	b.ReportAllocs()
	i := 0
	before := processorTime()
	for b.Loop() {
		f(i)
		i++
	}
	b.ReportMetric(float64(processorTime()-before)/float64(b.N)/1e3, "cpu-µs/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func BenchmarkCostOfCommand(b *testing.B) {
	for _, f := range benchFields {
		if f.schema == nil {
			continue // there is nothing to do
		}
		commands := map[string]bson.Raw{
			"insert": must(bson.Marshal(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "f", Value: f.value(7)}}}}})),
			"find":   must(bson.Marshal(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: f.filter(f.value(7))}})),
		}
		for _, name := range []string{"insert", "find"} {
			b.Run(name+"/"+f.name, func(b *testing.B) {
				_, plain, auto := startBench(b, &f)
				cipher := must(encryption.Auto(auto).Attach(allium.EncryptionTarget{Client: plain, Plain: func() (*allium.Client, error) { return plain, nil }}))
				defer cipher.Close()
				cmd := commands[name]
				sent := must(cipher.Encrypt(b.Context(), "db", cmd))
				measure(b, func(int) { must(cipher.Encrypt(b.Context(), "db", cmd)) })
				b.ReportMetric(float64(len(sent)), "bytes")
			})
		}
	}
}

func BenchmarkCostOfOperation(b *testing.B) {
	for _, name := range []string{"insert", "find"} {
		for _, f := range benchFields {
			b.Run(name+"/"+f.name, func(b *testing.B) {
				client, _, _ := startBench(b, &f)
				ctx := b.Context()
				coll := client.Database("db").Collection("c")
				document := func(i int) bson.D { return bson.D{{Key: "_id", Value: i}, {Key: "f", Value: f.value(i)}} }
				if name == "insert" {
					measure(b, func(i int) { must(coll.InsertOne(ctx, document(i))) })
					return
				}
				for i := range 1000 {
					must(coll.InsertOne(ctx, document(i)))
				}
				found := 0
				measure(b, func(i int) {
					docs := must(must(coll.Find(ctx, f.filter(f.value(i)))).All(ctx))
					found += len(docs)
				})
				if found == 0 {
					b.Error("nothing is found")
				}
				b.ReportMetric(float64(found)/float64(b.N), "docs/op")
			})
		}
	}
}
