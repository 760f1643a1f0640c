package interop

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"allium/internal/mistakes"
	"allium/mongotest"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var record = flag.Bool("record", false, "write down what the official driver answers to mistakes")

const recorded = "../internal/mistakes/testdata/official.json"

type officialUser struct {
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

// mistake is a mistake that is made with the official driver.
type mistake func(ctx context.Context, e *mistakes.Env) error

// mistaken opens a client that gives up early, and closes it when the test ends.
func mistaken(t *testing.T, uri string, opts ...*options.ClientOptions) (*mongo.Client, error) {
	all := append([]*options.ClientOptions{options.Client().ApplyURI(uri).SetServerSelectionTimeout(100 * time.Millisecond)}, opts...)
	client, err := mongo.Connect(all...)
	if err == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			client.Disconnect(ctx)
		})
	}
	return client, err
}

func host(d *mongotest.Deployment) string { return d.Hosts()[0] }

func rest[T any](_ T, err error) error { return err }

// TestMistakes makes the mistakes of docs/errors.md with the official driver, as far as it has the
// same calls, and compares its answers with those that the page shows.
func TestMistakes(t *testing.T) {
	opens := func(uri string) mistake {
		return func(context.Context, *mistakes.Env) error { return rest(mistaken(t, uri)) }
	}
	ping := func(uri func(*mistakes.Env) string, opts ...*options.ClientOptions) mistake {
		return func(ctx context.Context, e *mistakes.Env) error {
			client, err := mistaken(t, uri(e), opts...)
			if err != nil {
				return err
			}
			return client.Ping(ctx, nil)
		}
	}
	users := func(t *testing.T, e *mistakes.Env) *mongo.Collection {
		client, err := mongo.Connect(options.Client().ApplyURI(e.Set().URI()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			client.Disconnect(ctx)
		})
		c := client.Database("app").Collection("users")
		if err := c.Drop(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.InsertMany(context.Background(), []any{bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "Ada"}, {Key: "age", Value: 36}}, bson.D{{Key: "_id", Value: 2}, {Key: "name", Value: "Grace"}, {Key: "age", Value: 85}}}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	in := func(make func(ctx context.Context, c *mongo.Collection) error) mistake {
		return func(ctx context.Context, e *mistakes.Env) error { return make(ctx, users(t, e)) }
	}
	one := bson.M{"_id": 1}
	update := func(u any) mistake {
		return in(func(ctx context.Context, c *mongo.Collection) error { return rest(c.UpdateOne(ctx, one, u)) })
	}
	findOne := func(filter any, opts ...options.Lister[options.FindOneOptions]) mistake {
		return in(func(ctx context.Context, c *mongo.Collection) error { return c.FindOne(ctx, filter, opts...).Err() })
	}
	insert := func(doc any) mistake {
		return in(func(ctx context.Context, c *mongo.Collection) error { return rest(c.InsertOne(ctx, doc)) })
	}
	all := map[string]mistake{
		"no scheme":                          opens("localhost:27017"),
		"no host":                            opens("mongodb://"),
		"at sign in the password":            opens("mongodb://ada:p@ss@localhost"),
		"slash in the password":              opens("mongodb://ada:p/ss@localhost"),
		"port that is no number":             opens("mongodb://localhost:mongo"),
		"port out of range":                  opens("mongodb://localhost:270170"),
		"misspelt option":                    opens("mongodb://localhost/?replicatSet=rs0"),
		"misspelt boolean":                   opens("mongodb://localhost/?retryWrites=flase"),
		"misspelt read preference":           opens("mongodb://localhost/?readPreference=secundary"),
		"number with a unit":                 opens("mongodb://localhost/?connectTimeoutMS=10s"),
		"unknown compressor in the string":   opens("mongodb://localhost/?compressors=gzip"),
		"option without a value":             opens("mongodb://localhost/?tls"),
		"direct connection to several hosts": opens("mongodb://a,b/?directConnection=true"),
		"port in an SRV string":              opens("mongodb+srv://cluster.example.com:27017"),
		"unknown mechanism":                  opens("mongodb://ada:lovelace@localhost/?authMechanism=SCRAM-SHA-512"),
		"pool without room for its minimum":  opens("mongodb://localhost/?maxPoolSize=5&minPoolSize=10"),
		"unacknowledged and journaled":       opens("mongodb://localhost/?w=0&journal=true"),
		"certificate file that is not there": opens("mongodb://localhost/?tlsCAFile=/etc/ssl/ca.pem"),
		"certificate file without a certificate": func(_ context.Context, e *mistakes.Env) error {
			return rest(mistaken(t, "mongodb://localhost/?tlsCAFile="+e.File("notes.txt", "to do\n")))
		},
		"unknown compressor": func(context.Context, *mistakes.Env) error {
			return rest(mistaken(t, "mongodb://localhost", options.Client().SetCompressors([]string{"gzip"})))
		},

		"nobody listens":                      ping(func(e *mistakes.Env) string { return "mongodb://" + e.Closed() }),
		"wrong set name":                      ping(func(e *mistakes.Env) string { return "mongodb://" + host(e.Set()) + "/?replicaSet=rs1" }),
		"set name for a server without a set": ping(func(e *mistakes.Env) string { return "mongodb://" + host(e.Standalone()) + "/?replicaSet=rs0" }),
		"wrong set name on a direct connection": ping(func(e *mistakes.Env) string {
			return "mongodb://" + host(e.Set()) + "/?directConnection=true&replicaSet=rs1"
		}),
		"TLS to a server without it":          ping(func(e *mistakes.Env) string { return "mongodb://" + host(e.Standalone()) + "/?tls=true" }),
		"no TLS to a server with it":          ping(func(e *mistakes.Env) string { return "mongodb://" + host(e.TLS()) }),
		"certificate of an unknown authority": ping(func(e *mistakes.Env) string { return "mongodb://" + host(e.TLS()) + "/?tls=true" }),
		"not a MongoDB server": ping(func(e *mistakes.Env) string {
			return "mongodb://" + e.Listen("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n")
		}),
		"wrong password":                ping(func(e *mistakes.Env) string { return "mongodb://ada:byron@" + host(e.Auth()) }),
		"wrong authentication database": ping(func(e *mistakes.Env) string { return "mongodb://ada:lovelace@" + host(e.Auth()) + "/app" }),
		"no user": func(ctx context.Context, e *mistakes.Env) error {
			client, err := mistaken(t, "mongodb://"+host(e.Auth()))
			if err != nil {
				return err
			}
			return client.Database("app").Collection("users").FindOne(ctx, bson.M{}).Err()
		},
		"client that was closed": func(ctx context.Context, e *mistakes.Env) error {
			client, err := mistaken(t, "mongodb://"+host(e.Standalone()))
			if err != nil {
				return err
			}
			client.Disconnect(ctx)
			return client.Database("app").Collection("users").FindOne(ctx, bson.M{}).Err()
		},

		"nil filter":                              findOne(nil),
		"filter that is no document":              findOne("Ada"),
		"misspelt operator in a filter":           findOne(bson.M{"age": bson.M{"$gr": 18}}),
		"no document matches":                     findOne(bson.M{"name": "Edsger"}),
		"update without an operator":              update(bson.M{"age": 37}),
		"empty update":                            update(bson.M{}),
		"misspelt operator in an update":          update(bson.M{"$sett": bson.M{"age": 37}}),
		"change of the _id":                       update(bson.M{"$set": bson.M{"_id": 9}}),
		"number added to a text":                  update(bson.M{"$inc": bson.M{"name": 1}}),
		"position without an array in the filter": update(bson.M{"$set": bson.M{"scores.$": 1}}),
		"replacement with an operator": in(func(ctx context.Context, c *mongo.Collection) error {
			return rest(c.ReplaceOne(ctx, one, bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 37}}}}))
		}),
		"map with two keys as a command": in(func(ctx context.Context, c *mongo.Collection) error {
			return c.Database().RunCommand(ctx, bson.M{"find": "users", "limit": 1}).Err()
		}),
		"map with two keys as a sort": in(func(ctx context.Context, c *mongo.Collection) error {
			return rest(c.Find(ctx, bson.M{}, options.Find().SetSort(bson.M{"age": 1, "name": 1})))
		}),
		"map with two keys as an index": in(func(ctx context.Context, c *mongo.Collection) error {
			return rest(c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"age": 1, "name": 1}}))
		}),
		"command that does not exist": in(func(ctx context.Context, c *mongo.Collection) error {
			return c.Database().RunCommand(ctx, bson.D{{Key: "serverstatus", Value: 1}}).Err()
		}),
		"misspelt stage": in(func(ctx context.Context, c *mongo.Collection) error {
			return rest(c.Aggregate(ctx, bson.A{bson.M{"$mtach": bson.M{"age": 36}}}))
		}),
		"pipeline that is a document": in(func(ctx context.Context, c *mongo.Collection) error {
			return rest(c.Aggregate(ctx, bson.M{"$match": bson.M{}}))
		}),
		"text search without an index":       findOne(bson.M{"$text": bson.M{"$search": "ada"}}),
		"hint at an index that is not there": findOne(bson.M{}, options.FindOne().SetHint("age_1")),

		"text in a field of numbers": in(func(ctx context.Context, c *mongo.Collection) error {
			if _, err := c.UpdateOne(ctx, one, bson.M{"$set": bson.M{"age": "36"}}); err != nil {
				return err
			}
			var u officialUser
			return c.FindOne(ctx, one).Decode(&u)
		}),
		"decoding into a value": func(context.Context, *mistakes.Env) error {
			raw, err := bson.Marshal(officialUser{Name: "Ada"})
			if err != nil {
				return err
			}
			var u officialUser
			return bson.Unmarshal(raw, u)
		},
		"nil pointer to decode into": func(context.Context, *mistakes.Env) error {
			raw, err := bson.Marshal(officialUser{Name: "Ada"})
			if err != nil {
				return err
			}
			var u *officialUser
			return bson.Unmarshal(raw, u)
		},
		"number that does not fit": in(func(ctx context.Context, c *mongo.Collection) error {
			if _, err := c.UpdateOne(ctx, one, bson.M{"$set": bson.M{"age": 300}}); err != nil {
				return err
			}
			var u struct {
				Age int8 `bson:"age"`
			}
			return c.FindOne(ctx, one).Decode(&u)
		}),
		"field that cannot be encoded": insert(struct {
			Done chan bool `bson:"done"`
		}{make(chan bool)}),
		"document that is no document": insert("Ada"),
		"document that is too large":   insert(bson.D{{Key: "photo", Value: make([]byte, 17<<20)}}),
		"array as an _id":              insert(bson.D{{Key: "_id", Value: bson.A{1, 2}}}),
		"field name with a dollar":     insert(bson.D{{Key: "_id", Value: bson.D{{Key: "$oid", Value: 1}}}}),
		"text that is no ObjectID":     func(context.Context, *mistakes.Env) error { return rest(bson.ObjectIDFromHex("42")) },
		"nothing to insert": in(func(ctx context.Context, c *mongo.Collection) error {
			return rest(c.InsertMany(ctx, []any{}))
		}),

		"cursor that was closed": in(func(ctx context.Context, c *mongo.Collection) error {
			cur, err := c.Find(ctx, bson.M{}, options.Find().SetBatchSize(1))
			if err != nil {
				return err
			}
			cur.Close(ctx)
			var docs []bson.D
			return cur.All(ctx, &docs)
		}),
		"session that has ended": in(func(ctx context.Context, c *mongo.Collection) error {
			s, err := c.Database().Client().StartSession()
			if err != nil {
				return err
			}
			s.EndSession(ctx)
			return c.FindOne(mongo.NewSessionContext(ctx, s), bson.M{}).Err()
		}),
		"transaction on a standalone": func(ctx context.Context, e *mistakes.Env) error {
			client, err := mistaken(t, "mongodb://"+host(e.Standalone()))
			if err != nil {
				return err
			}
			s, err := client.StartSession()
			if err != nil {
				return err
			}
			defer s.EndSession(ctx)
			return rest(s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
				return client.Database("app").Collection("users").InsertOne(ctx, bson.D{{Key: "name", Value: "Ada"}})
			}))
		},
		"change stream on a standalone": func(ctx context.Context, e *mistakes.Env) error {
			client, err := mistaken(t, "mongodb://"+host(e.Standalone()))
			if err != nil {
				return err
			}
			return rest(client.Database("app").Collection("users").Watch(ctx, mongo.Pipeline{}))
		},
		"commit without a transaction": in(func(ctx context.Context, c *mongo.Collection) error {
			s, err := c.Database().Client().StartSession()
			if err != nil {
				return err
			}
			defer s.EndSession(ctx)
			return s.CommitTransaction(ctx)
		}),

		"key that is there already": insert(bson.D{{Key: "_id", Value: 1}}),
		"keys that are there already": in(func(ctx context.Context, c *mongo.Collection) error {
			var docs []any
			for i := range 8 {
				docs = append(docs, bson.D{{Key: "_id", Value: i/7 + 1}})
			}
			return rest(c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false)))
		}),
		"document that a validator rejects": in(func(ctx context.Context, c *mongo.Collection) error {
			adults := c.Database().Collection("adults")
			if err := adults.Drop(ctx); err != nil {
				return err
			}
			if err := c.Database().CreateCollection(ctx, "adults", options.CreateCollection().SetValidator(bson.M{"$jsonSchema": bson.M{
				"properties": bson.M{"age": bson.M{"bsonType": "int"}}}})); err != nil {
				return err
			}
			return rest(adults.InsertOne(ctx, bson.D{{Key: "_id", Value: 3}, {Key: "age", Value: "old"}}))
		}),
		"nothing to write": in(func(ctx context.Context, c *mongo.Collection) error {
			return rest(c.BulkWrite(ctx, nil))
		}),
		"empty database name": in(func(ctx context.Context, c *mongo.Collection) error {
			return c.Database().Client().Database("").Collection("users").FindOne(ctx, bson.M{}).Err()
		}),
		"database name with a dot": in(func(ctx context.Context, c *mongo.Collection) error {
			return rest(c.Database().Client().Database("my.app").Collection("users").InsertOne(ctx, one))
		}),
		"collection name with a dollar": in(func(ctx context.Context, c *mongo.Collection) error {
			return rest(c.Database().Collection("$users").InsertOne(ctx, one))
		}),
		"drop of an index that is not there": in(func(ctx context.Context, c *mongo.Collection) error {
			return c.Indexes().DropOne(ctx, "age_1")
		}),
		"answer that comes too late": func(ctx context.Context, e *mistakes.Env) error {
			c := users(t, e)
			e.Set().FailCommand(mongotest.Fail{Commands: []string{"find"}, Block: 400 * time.Millisecond, Times: 1})
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return c.FindOne(ctx, bson.M{}).Err()
		},
		"context that was cancelled": in(func(ctx context.Context, c *mongo.Collection) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return c.FindOne(ctx, bson.M{}).Err()
		}),
	}
	ours := map[string]bool{}
	for _, s := range mistakes.Sections() {
		for _, m := range s.Mistakes {
			ours[m.Name] = true
		}
	}
	want := map[string]string{}
	data, err := os.ReadFile(recorded)
	if err == nil {
		err = json.Unmarshal(data, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, make := range all {
		if !ours[name] {
			t.Errorf("%s: no such mistake", name)
			continue
		}
		e := mistakes.NewEnv(t)
		text := ""
		if err := make(t.Context(), e); err != nil {
			text = e.Clean(err.Error())
		}
		got[name] = text
		if (text == "") != (want[name] == "") && !*record {
			t.Errorf("%s: %q, recorded is %q", name, text, want[name])
		}
	}
	if *record {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "\t")
		if err := enc.Encode(got); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(recorded, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
