package campaign

import (
	"context"

	"allium"
	"allium/bson"
)

// tenants is how many scopes share a collection.
const tenants = 2

// tenantDoc is a document that one tenant makes and changes. By is written by every change, so that
// a change by another tenant stays to be seen.
type tenantDoc struct {
	ID     bson.ObjectID `bson:"_id,omitempty"`
	Tenant int           `bson:"tenant"`
	By     int           `bson:"by"`
	N      int           `bson:"n"`
}

// tenant works on all documents of a collection that it shares with others, in a scope: whatever
// fails on the way, it sees and changes its own.
func (a *actor) tenant() {
	own := a.plan.ID % tenants
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "by", Value: own}}}}
	coll := allium.CollectionOf[tenantDoc](a.client().Database(dbName), "tenants").Scoped(allium.Scope{
		Filter:   bson.D{{Key: "tenant", Value: own}},
		OnInsert: func(context.Context) bson.D { return bson.D{{Key: "tenant", Value: own}} },
		OnUpdate: func(context.Context) bson.D { return set },
	})
	everything, more := bson.D{}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}
	check := func(what string, docs ...tenantDoc) {
		for _, d := range docs {
			if d.Tenant != own || d.By != own {
				a.violation("tenant %d: %s finds a document of tenant %d, changed by tenant %d", own, what, d.Tenant,
					d.By)
			}
		}
	}
	work := func(ctx context.Context) error {
		if _, err := coll.InsertMany(ctx, []tenantDoc{{By: own}, {By: own}}); err != nil {
			return err
		}
		if _, err := coll.UpdateMany(ctx, everything, more); err != nil {
			return err
		}
		docs, err := coll.All(ctx, everything)
		check("find", docs...)
		return err
	}
	switch a.r.IntN(5) {
	case 0:
		_ = a.do("scoped transaction", func(ctx context.Context) error { return a.client().Transact(ctx, work) })
	case 1:
		_ = a.do("scoped bulk write", func(ctx context.Context) error {
			_, err := coll.BulkWrite(ctx, []allium.WriteModel{coll.InsertOneModel(tenantDoc{By: own}),
				coll.UpdateManyModel(everything, more),
				coll.UpdateOneModel(bson.D{{Key: "n", Value: -1}}, more, allium.UpdateModelOptions{Upsert: true})})
			return err
		})
	case 2:
		_ = a.do("scoped findAndModify", func(ctx context.Context) error {
			d, err := coll.FindOneAndUpdate(ctx, everything, more,
				allium.FindOneAndUpdateOptions{ReturnNew: true, Upsert: true})
			if err == nil {
				check("findAndModify", d)
			}
			return err
		})
	case 3:
		_ = a.do("scoped aggregate", func(ctx context.Context) error {
			cur, err := coll.Aggregate(ctx, bson.A{bson.D{{Key: "$unionWith", Value: "tenants"}}})
			if err != nil {
				return err
			}
			docs, err := cur.All(ctx)
			check("aggregate", docs...)
			if err == nil {
				_, err = coll.DeleteMany(ctx, bson.D{{Key: "n", Value: bson.D{{Key: "$gt", Value: 5}}}})
			}
			return err
		})
	default:
		_ = a.do("scoped operations", work)
	}
}
