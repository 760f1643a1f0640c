package campaign

import (
	"context"
	"strconv"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
)

func now() time.Time { return time.Now() }

// number returns a field that holds an integer.
func number(d bson.D, key string) int64 {
	for _, e := range d {
		if e.Key == key {
			switch v := e.Value.(type) {
			case int32:
				return int64(v)
			case int64:
				return v
			case int:
				return int64(v)
			}
		}
	}
	return -1 << 40
}

var snapshot = &consistency.ReadConcern{Level: consistency.ReadSnapshot}

// transfer moves money from one account to another.
func (a *actor) transfer() {
	two := shuffled(a.r, accounts)[:2]
	amount := 1 + a.r.IntN(50)
	add := func(ctx context.Context, id, n int) error {
		_, err := a.coll("accounts").UpdateOne(ctx, byID(id),
			bson.D{{Key: "$inc", Value: bson.D{{Key: "balance", Value: n}}}})
		return err
	}
	_ = a.do("Transact", func(ctx context.Context) error {
		return a.client().Transact(ctx, func(ctx context.Context) error {
			if err := add(ctx, two[0], -amount); err != nil {
				return err
			}
			return add(ctx, two[1], amount)
		}, allium.TransactionOptions{ReadConcern: snapshot, WriteConcern: consistency.Majority()})
	})
}

// audit reads all accounts, in a transaction or in a snapshot session, twice: the sum never
// changes, and at one point in time neither does anything else.
func (a *actor) audit() {
	inTransaction := a.r.IntN(2) == 0
	sum := func(ctx context.Context) (string, error) {
		cur, err := a.coll("accounts").Find(ctx, bson.D{}, allium.FindOptions{Sort: byID(1), BatchSize: new(int32(2))})
		if err != nil {
			return "", err
		}
		defer cur.Close(ctx)
		total, text := int64(0), ""
		for cur.Next(ctx) {
			n := number(cur.Current(), "balance")
			total += n
			text += " " + strconv.FormatInt(n, 10)
		}
		if err := cur.Err(); err != nil {
			return "", err
		}
		if total != accounts*opening {
			a.violation("auditor: the accounts hold %d instead of %d", total, accounts*opening)
		}
		return text, nil
	}
	twice := func(ctx context.Context) error {
		one, err := sum(ctx)
		if err != nil {
			return err
		}
		rest(ctx, about(a.r, 100*time.Millisecond))
		two, err := sum(ctx)
		if err == nil && one != two {
			a.violation("auditor: two reads at the same point in time differ: %s, %s", one, two)
		}
		return err
	}
	_ = a.do("audit", func(ctx context.Context) error {
		if inTransaction {
			return a.client().Transact(ctx, twice, allium.TransactionOptions{ReadConcern: snapshot})
		}
		s, err := a.client().StartSession(allium.SessionOptions{Snapshot: true})
		if err != nil {
			return err
		}
		defer s.End(ctx)
		return twice(allium.WithSession(ctx, s))
	})
}
