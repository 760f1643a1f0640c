package wire

import (
	"context"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
)

// The option Hosts stands in for the connection string's hosts, and for the string itself.
func TestHosts(t *testing.T) {
	for name, test := range map[string]struct {
		uri   string
		hosts []string
		want  []string // the servers, or an error
		err   string
	}{
		"no string":          {"", []string{"A", "b:1"}, []string{"a:27017", "b:1"}, ""},
		"instead of its own": {"mongodb://x,y:7/?appName=z", []string{"a"}, []string{"a:27017"}, ""},
		"IPv6":               {"", []string{"[::1]:4"}, []string{"[::1]:4"}, ""},
		"a socket":           {"", []string{"/tmp/a b%20.sock"}, []string{"/tmp/a b%20.sock"}, ""},
		"none":               {"mongodb://x", nil, []string{"x:27017"}, ""},
		"neither":            {"", nil, nil, "scheme must be"},
		"SRV":                {"mongodb+srv://cluster.example.com", []string{"a"}, nil, "exclude each other"},
		"a port that is not": {"", []string{"a:user"}, nil, "option Hosts: host \"a\": the port must be"},
		"user info":          {"", []string{"ada:secret@a"}, nil, "option Hosts: host"},
		"several at once":    {"", []string{"a,b"}, nil, "option Hosts: host"},
		"an empty one":       {"", []string{""}, nil, "option Hosts: a host is empty"},
		"a whole string":     {"", []string{"mongodb://a"}, nil, "option Hosts: host"},
		"too many":           {"mongodb://x/?directConnection=true", []string{"a", "b"}, nil, "directConnection"},
	} {
		client, err := allium.Open(test.uri, allium.ClientOptions{Hosts: test.hosts})
		if err != nil {
			if test.err == "" || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %q", name, err, test.err)
			}
			continue
		}
		var got []string
		for _, s := range client.Topology().Servers {
			got = append(got, s.Addr)
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q, %q", name, got, test.want, test.err)
		}
		client.Close(context.Background())
	}
}

// What an insert returns becomes the type that the program has for it, whichever made it.
func TestInsertedIDs(t *testing.T) {
	type (
		name   string
		number int32
		key    struct {
			Tenant string `bson:"tenant"`
			N      int64  `bson:"n"`
		}
		uuid struct {
			ID bson.UUID `bson:"_id"`
		}
	)
	client := rig.Open(t, testdeploy.Start(t, testdeploy.Any).URI())
	db := client.Database("app")
	insertedAs(t, db, struct {
		ID name `bson:"_id"`
	}{"ada"}, name("ada"))
	insertedAs(t, db, struct {
		ID number `bson:"_id"`
	}{7}, number(7))
	insertedAs(t, db, struct {
		ID key `bson:"_id"`
	}{key{"x", 1 << 40}}, key{"x", 1 << 40})
	id := bson.NewUUID()
	insertedAs(t, db, uuid{id}, id)

	res, err := db.Collection("ids").InsertOne(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	if generated, ok := res.InsertedID.(bson.ObjectID); !ok || generated.IsZero() {
		t.Errorf("the generated _id is %v", res.InsertedID)
	}
	if _, err := bson.Convert[number](res.InsertedID); err == nil {
		t.Error("an ObjectID has become a number")
	}
}

func insertedAs[K comparable, T any](t *testing.T, db *allium.Database, doc T, want K) {
	t.Helper()
	coll := allium.CollectionOf[T](db, "ids")
	one, err := coll.InsertOne(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := bson.Convert[K](one.InsertedID); got != want || err != nil {
		t.Errorf("InsertOne of %v: %v, %v", want, got, err)
	}
	if _, err := coll.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: want}}); err != nil {
		t.Fatal(err)
	}
	many, err := coll.InsertMany(t.Context(), []T{doc})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := bson.Convert[K](many.InsertedIDs[0]); got != want || err != nil {
		t.Errorf("InsertMany of %v: %v, %v", want, got, err)
	}
}
