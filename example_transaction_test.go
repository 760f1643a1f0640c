package allium_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/mongotest"
)

// Member is the document of the examples of sessions.
type Member struct {
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

// team starts a replica set inside this process and connects to it. The collection that it returns
// has three documents. A program calls allium.Open with the connection string of its own
// deployment.
func team() (client *allium.Client, members *allium.Collection[Member], done func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err = allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	members = allium.CollectionOf[Member](client.Database("app"), "members")
	if _, err := members.InsertMany(context.Background(), []Member{{"Ada", 36}, {"Grace", 85}, {"Edsger", 72}}); err != nil {
		log.Fatal(err)
	}
	return client, members, func() {
		client.Close(context.Background())
		d.Stop()
	}
}

// Account is the document of the money transfer.
type Account struct {
	ID      string `bson:"_id"`
	Balance int64  `bson:"balance"`
}

var errFunds = errors.New("not enough money")

// transfer moves money from one account to another: both balances change, or none does.
func transfer(ctx context.Context, accounts *allium.Collection[Account], from, to string, amount int64) error {
	client := accounts.Database().Client()
	return client.Transact(ctx, func(ctx context.Context) error {
		enough := bson.M{"_id": from, "balance": bson.M{"$gte": amount}}
		res, err := accounts.UpdateOne(ctx, enough, bson.M{"$inc": bson.M{"balance": -amount}})
		if err != nil {
			return err
		}
		if res.MatchedCount == 0 {
			return errFunds // aborts the transaction
		}
		_, err = accounts.UpdateOne(ctx, bson.M{"_id": to}, bson.M{"$inc": bson.M{"balance": amount}}, allium.UpdateOptions{Upsert: true})
		return err
	}, allium.TransactionOptions{WriteConcern: consistency.Majority()})
}

func ExampleClient_Transact_transfer() {
	client, _, done := team()
	defer done()
	ctx := context.Background()
	accounts := allium.CollectionOf[Account](client.Database("bank"), "accounts")
	if _, err := accounts.InsertMany(ctx, []Account{{"Ada", 100}, {"Grace", 20}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(transfer(ctx, accounts, "Ada", "Grace", 70))
	fmt.Println(transfer(ctx, accounts, "Ada", "Grace", 70))
	cur, err := accounts.Find(ctx, bson.D{}, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})
	if err != nil {
		log.Fatal(err)
	}
	for account, err := range cur.Seq(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(account.ID, account.Balance)
	}
	// Output:
	// <nil>
	// not enough money
	// Ada 30
	// Grace 90
}

// For those who want to say themselves what happens on an error. Transact does all of this, and
// tries again.
func ExampleSession_StartTransaction() {
	client, members, done := team()
	defer done()
	s, err := client.StartSession()
	if err != nil {
		log.Fatal(err)
	}
	ctx := allium.WithSession(context.Background(), s)
	defer s.End(ctx)

	if err := s.StartTransaction(allium.TransactionOptions{ReadConcern: &consistency.ReadConcern{Level: "snapshot"}}); err != nil {
		log.Fatal(err)
	}
	if _, err := members.DeleteMany(ctx, bson.D{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(allium.SessionFrom(ctx) == s, s.InTransaction())
	if err := s.AbortTransaction(ctx); err != nil {
		log.Fatal(err)
	}
	n, err := members.CountDocuments(ctx, bson.D{})
	fmt.Println(s.InTransaction(), n, err)

	if err := s.StartTransaction(); err != nil {
		log.Fatal(err)
	}
	if _, err := members.DeleteOne(ctx, bson.M{"name": "Ada"}); err != nil {
		log.Fatal(err)
	}
	if err := s.CommitTransaction(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.InTransaction())
	n, err = members.CountDocuments(ctx, bson.D{})
	fmt.Println(n, err)
	// Output:
	// true true
	// false 3 <nil>
	// false
	// 2 <nil>
}

// A session can be used for several transactions, each of which sees what the ones before it have
// done.
func ExampleSession_Transact() {
	client, members, done := team()
	defer done()
	s, err := client.StartSession()
	if err != nil {
		log.Fatal(err)
	}
	defer s.End(context.Background())
	for range 2 {
		err := s.Transact(context.Background(), func(ctx context.Context) error {
			ada, err := members.FindOneAndUpdate(ctx, bson.M{"name": "Ada"}, bson.M{"$inc": bson.M{"age": 1}}, allium.FindOneAndUpdateOptions{ReturnNew: true})
			fmt.Println(ada.Age, s.InTransaction())
			return err
		}, allium.TransactionOptions{Timeout: new(time.Minute)})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 37 true
	// 38 true
}

// One process writes, another one reads what it wrote, also from a secondary: the times travel
// between them as they like.
func ExampleSession_AdvanceOperationTime() {
	client, members, done := team()
	defer done()
	writer, err := client.StartSession()
	if err != nil {
		log.Fatal(err)
	}
	defer writer.End(context.Background())
	if _, err := members.InsertOne(allium.WithSession(context.Background(), writer), Member{"Alan", 41}); err != nil {
		log.Fatal(err)
	}
	clusterTime, operationTime := writer.ClusterTime(), writer.OperationTime()

	reader, err := client.StartSession()
	if err != nil {
		log.Fatal(err)
	}
	defer reader.End(context.Background())
	if err := reader.AdvanceClusterTime(clusterTime); err != nil {
		log.Fatal(err)
	}
	reader.AdvanceOperationTime(*operationTime)
	n, err := members.CountDocuments(allium.WithSession(context.Background(), reader), bson.D{})
	fmt.Println(n, err)
	// Output: 4 <nil>
}

// Both reads see the data of the same point in time.
func ExampleSession_SnapshotTime() {
	client, members, done := team()
	defer done()
	s, err := client.StartSession(allium.SessionOptions{Snapshot: true})
	if err != nil {
		log.Fatal(err)
	}
	defer s.End(context.Background())
	ctx := allium.WithSession(context.Background(), s)
	before, err := members.CountDocuments(ctx, bson.D{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := members.DeleteMany(context.Background(), bson.D{}); err != nil {
		log.Fatal(err)
	}
	after, err := members.CountDocuments(ctx, bson.D{})
	fmt.Println(before, after, s.SnapshotTime() != nil, err)
	// Output: 3 3 true <nil>
}

// What a session tells of itself, for logs.
func ExampleSession_ID() {
	client, members, done := team()
	defer done()
	s, err := client.StartSession()
	if err != nil {
		log.Fatal(err)
	}
	defer s.End(context.Background())
	_, err = members.FindOne(allium.WithSession(context.Background(), s), bson.M{"name": "Ada"})
	id, _ := s.ID().Lookup("id").Binary()
	fmt.Println(err, s.Client() == client, len(id.Data))
	// Output: <nil> true 16
}
