package allium_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"allium"
	"allium/bson"
)

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
		_, err = accounts.UpdateOne(ctx, bson.M{"_id": to}, bson.M{"$inc": bson.M{"balance": amount}}, allium.UpdateOptions{Upsert: new(true)})
		return err
	}, allium.TransactionOptions{WriteConcern: allium.Majority()})
}

func ExampleClient_Transact_transfer() {
	client, done := connect()
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
