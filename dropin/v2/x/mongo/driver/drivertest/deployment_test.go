package drivertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/drivertest"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/xoptions"
)

// TestReplies checks that each command gets the next reply, errors too, and what comes after the
// last.
func TestReplies(t *testing.T) {
	ctx := t.Context()
	d := drivertest.NewMockDeployment(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}})
	o := options.Client()
	if err := xoptions.SetInternalClientOptions(o, "deployment", d); err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(ctx)
	coll := client.Database("app").Collection("users")
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "x", Value: 1}}); err != nil {
		t.Error(err)
	}
	d.AddResponses(
		bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 59}, {Key: "codeName", Value: "CommandNotFound"}, {Key: "errmsg", Value: "no"}},
		bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 0}, {Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E11000"}}}}},
	)
	var command mongo.CommandError
	if _, err := coll.InsertOne(ctx, bson.D{}); !errors.As(err, &command) || command.Code != 59 {
		t.Errorf("got %v, want code 59", err)
	}
	if _, err := coll.InsertOne(ctx, bson.D{}); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("got %v, want a duplicate key", err)
	}
	d.AddResponses(bson.D{{Key: "ok", Value: 1}})
	d.ClearResponses()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := coll.InsertOne(ctx, bson.D{}); !errors.Is(err, drivertest.ErrNoResponsesRemaining) || !mongo.IsNetworkError(err) {
		t.Errorf("got %v, want %v", err, drivertest.ErrNoResponsesRemaining)
	}
	for key, val := range map[string]any{"deployment": 5, "crypt": nil} {
		if xoptions.SetInternalClientOptions(o, key, val) == nil {
			t.Errorf("%q was taken as %v", key, val)
		}
	}
	if xoptions.SetInternalAggregateOptions(options.Aggregate(), "addCommandFields", bson.D{}) == nil {
		t.Error("what has no effect was taken")
	}
}

func TestMessages(t *testing.T) {
	doc, err := bson.Marshal(bson.D{{Key: "ping", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	message := append([]byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0, 0, 0, 0, 0, 0}, doc...)
	got, err := drivertest.GetCommandFromMsgWireMessage(message)
	if err != nil || string(got) != string(doc) {
		t.Errorf("got %v, %v", got, err)
	}
	for n := range len(message) {
		if _, err := drivertest.GetCommandFromMsgWireMessage(message[:n]); err == nil {
			t.Errorf("%d bytes of the message were taken", n)
		}
	}
	reply := drivertest.MakeReply(doc)
	if tail, _, ok := bsoncore.ReadDocument(reply[36:]); !ok || string(tail) != string(doc) {
		t.Errorf("the reply is %v", reply)
	}
}
