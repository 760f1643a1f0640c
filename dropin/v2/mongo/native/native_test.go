package native_test

import (
	"context"
	"testing"

	"allium"
	abson "allium/bson"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/native"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/drivertest"
)

func found(doc bson.D) bson.D {
	return bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "app.users"}, {Key: "firstBatch", Value: bson.A{doc}}}}}
}

// TestBothSides reads by the one side what the other would read, with the same client and session.
func TestBothSides(t *testing.T) {
	ctx := t.Context()
	d := drivertest.NewMockDeployment(found(bson.D{{Key: "name", Value: "Ada"}}), found(bson.D{{Key: "name", Value: "Alan"}}), found(bson.D{{Key: "name", Value: "Grace"}}))
	o := options.Client()
	o.Deployment = d
	client, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(ctx)
	users := client.Database("app").Collection("users")
	type user struct{ Name string }

	if u, err := native.Collection[user](users).FindOne(ctx, abson.D{}); err != nil || u.Name != "Ada" {
		t.Errorf("got %+v, %v by Allium's collection", u, err)
	}
	inner := native.Client(client)
	if native.Database(client.Database("app")).Client() != inner {
		t.Error("the database has another client")
	}
	back := native.FromClient(inner)
	var u user
	if err := back.Database("app").Collection("users").FindOne(ctx, bson.D{}).Decode(&u); err != nil || u.Name != "Alan" {
		t.Errorf("got %+v, %v by a client of Allium's", u, err)
	}
	s, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.EndSession(ctx)
	err = mongo.WithSession(ctx, s, func(ctx context.Context) error {
		if allium.SessionFrom(ctx) == nil {
			t.Error("Allium does not see the session")
		}
		return users.FindOne(ctx, bson.D{}).Err()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestZero makes handles of zero values, as tests of programs do that only pass them on.
func TestZero(t *testing.T) {
	coll := new(mongo.Client).Database("app").Collection("users")
	if clone := coll.Clone(options.Collection()); clone.Name() != "users" || clone.Database().Name() != "app" {
		t.Errorf("the handle is of %s.%s", clone.Database().Name(), clone.Name())
	}
	new(mongo.Collection).Clone()
	new(mongo.Collection).Indexes()
}
