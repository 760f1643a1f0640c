package main

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// commandScenes are those about commands that the server answers.
func commandScenes() []scene {
	unacknowledged := options.Client().SetWriteConcern(writeconcern.Unacknowledged())
	yes := true
	return []scene{
		{name: "connect", pool: true, run: func(*mongo.Collection) []any { return nil }},
		{name: "insert", run: func(c *mongo.Collection) []any {
			r, err := c.InsertOne(ctx, d("_id", 9))
			return []any{r.InsertedID, err}
		}},
		{name: "insert twice", run: func(c *mongo.Collection) []any {
			_, err := c.InsertOne(ctx, d("_id", 1))
			return []any{err}
		}},
		{name: "insert many", run: func(c *mongo.Collection) []any {
			r, err := c.InsertMany(ctx, []any{d("_id", 8), d("_id", 1), d("_id", 7)})
			return []any{r.InsertedIDs, err}
		}},
		{name: "insert many unordered", run: func(c *mongo.Collection) []any {
			r, err := c.InsertMany(ctx, []any{d("_id", 8), d("_id", 1), d("_id", 2), d("_id", 7)},
				options.InsertMany().SetOrdered(false).SetComment("c").SetBypassDocumentValidation(true))
			return []any{r.InsertedIDs, err}
		}},
		{name: "refused", run: func(c *mongo.Collection) []any {
			_, err := c.Find(ctx, d("$bad", 1))
			return []any{err, c.FindOne(ctx, d("$where", 7)).Err(), c.Database().RunCommand(ctx, d("nothing", 1)).Err()}
		}},
		{name: "cursor", run: func(c *mongo.Collection) []any {
			cur, err := c.Find(ctx, d("x", d("$gt", "")), options.Find().SetBatchSize(2).SetSort(d("_id", 1)).
				SetComment("c").SetAllowDiskUse(true).SetLet(d("a", 1)).SetSkip(1).SetLimit(5).SetHint("_id_").
				SetCollation(&options.Collation{Locale: "en", Strength: 2}).SetProjection(d("x", 1)))
			var all []bson.D
			return []any{err, cur.All(ctx, &all), all}
		}},
		{name: "cursor closed", run: func(c *mongo.Collection) []any {
			cur, err := c.Aggregate(ctx, []bson.D{d("$match", d())}, options.Aggregate().SetBatchSize(2).
				SetLet(d("a", 1)).
				SetComment("c").SetAllowDiskUse(false).SetHint(d("_id", 1)).SetBypassDocumentValidation(true))
			return []any{err, cur.Next(ctx), cur.Close(ctx)}
		}},
		{name: "cursor fails", run: func(c *mongo.Collection) []any {
			failing(1, 2, nil, "getMore")
			cur, err := c.Find(ctx, d(), options.Find().SetBatchSize(2))
			var all []bson.D
			return []any{err, cur.All(ctx, &all), len(all)}
		}},
		{name: "tailable", run: func(c *mongo.Collection) []any {
			capped := c.Database().Collection("capped")
			must(c.Database().CreateCollection(ctx, "capped",
				options.CreateCollection().SetCapped(true).SetSizeInBytes(4096).SetMaxDocuments(5)))
			_, err := capped.InsertOne(ctx, d("_id", 1))
			must(err)
			cur, err := capped.Find(ctx, d(), options.Find().SetCursorType(options.TailableAwait).SetBatchSize(1))
			return []any{err, cur.Next(ctx), cur.TryNext(ctx), cur.Err(), cur.Close(ctx)}
		}},
		{name: "one", run: func(c *mongo.Collection) []any {
			var out bson.D
			return []any{c.FindOne(ctx, d("_id", 1), options.FindOne().SetSort(d("_id", 1)).SetHint("_id_").
				SetProjection(d("x", 1)).SetAllowPartialResults(true).SetShowRecordID(true).
				SetMin(d("_id", 0)).SetMax(d("_id", 5))).Decode(&out), out, c.FindOne(ctx, d("_id", 100)).Err()}
		}},
		{name: "update", run: func(c *mongo.Collection) []any {
			one, err := c.UpdateOne(ctx, d("_id", 1), d("$set", d("y", 1)), updateOptions().SetUpsert(true).
				SetHint("_id_").SetComment("c").SetLet(d("a", 1)).SetCollation(&options.Collation{Locale: "en"}).
				SetArrayFilters(filters()))
			many, err2 := c.UpdateMany(ctx, d("_id", d("$gt", 1)), []bson.D{d("$set", d("y", "$x"))})
			upserted, err3 := c.ReplaceOne(ctx, d("_id", 50), d("z", 1), options.Replace().SetUpsert(true))
			_, err4 := c.UpdateOne(ctx, d("_id", 1), d("$set", d("_id", 2)))
			return []any{*one, err, *many, err2, *upserted, err3, err4}
		}},
		{name: "delete", run: func(c *mongo.Collection) []any {
			one, err := c.DeleteOne(ctx, d("_id", 1), deleteOptions().SetHint("_id_").SetComment("c").SetLet(d("a", 1)))
			many, err2 := c.DeleteMany(ctx, d())
			return []any{*one, err, *many, err2}
		}},
		{name: "find and modify", run: func(c *mongo.Collection) []any {
			var out bson.D
			return []any{
				c.FindOneAndUpdate(ctx, d("_id", 1), d("$inc", d("n", 1)), options.FindOneAndUpdate().SetUpsert(true).
					SetReturnDocument(options.After).SetSort(d("_id", 1)).SetProjection(d("n", 1)).
					SetHint("_id_").SetLet(d("a", 1)).SetComment("c")).Decode(&out), out,
				c.FindOneAndReplace(ctx, d("_id", 2), d("r", 1)).Decode(&out), out,
				c.FindOneAndDelete(ctx, d("_id", 3)).Decode(&out), out,
				c.FindOneAndDelete(ctx, d("_id", 3)).Decode(&out),
				c.FindOneAndUpdate(ctx, d("_id", 1), d("$set", d("_id", 2))).Err(),
			}
		}},
		{name: "counts", run: func(c *mongo.Collection) []any {
			n, err := c.CountDocuments(ctx, d(), options.Count().SetSkip(1).SetLimit(1).SetHint("_id_").SetComment("c"))
			m, err2 := c.EstimatedDocumentCount(ctx, options.EstimatedDocumentCount().SetComment("c"))
			values, err3 := distinct(ctx, c, "x", d("_id", d("$lt", 3)))
			return []any{n, err, m, err2, values, err3}
		}},
		{name: "bulk", run: func(c *mongo.Collection) []any {
			r, err := c.BulkWrite(ctx, []mongo.WriteModel{
				mongo.NewInsertOneModel().SetDocument(d("_id", 10)),
				mongo.NewInsertOneModel().SetDocument(d("_id", 11)),
				mongo.NewUpdateOneModel().SetFilter(d("_id", 10)).SetUpdate(d("$set", d("a", 1))).SetHint("_id_"),
				mongo.NewReplaceOneModel().SetFilter(d("_id", 12)).SetReplacement(d("b", 1)).SetUpsert(true),
				mongo.NewDeleteManyModel().SetFilter(d("_id", d("$gt", 10))),
				mongo.NewInsertOneModel().SetDocument(d("_id", 1)),
				mongo.NewDeleteOneModel().SetFilter(d("_id", 2)),
			}, options.BulkWrite().SetComment("c").SetLet(d("a", 1)))
			return []any{*r, err}
		}},
		{name: "indexes", run: func(c *mongo.Collection) []any {
			name, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: d("x", 1),
				Options: options.Index().SetUnique(true).SetSparse(true).
					SetPartialFilterExpression(d("x", d("$gt", "")))})
			if err != nil {
				name, err = c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: d("x", 1),
					Options: options.Index().SetUnique(true)})
			}
			cur, err2 := c.Indexes().List(ctx)
			var all []bson.D
			err3 := cur.All(ctx, &all)
			_, err4 := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: d("x", 1),
				Options: options.Index().SetName("other")})
			specs, err5 := c.Indexes().ListSpecifications(ctx)
			return []any{name, err, err2, err3, all, err4, specs, err5}
		}},
		{name: "catalog", run: func(c *mongo.Collection) []any {
			db := c.Database()
			names, err := db.ListCollectionNames(ctx, d("name", "c"), options.ListCollections().SetNameOnly(true))
			dbs, err2 := db.Client().ListDatabaseNames(ctx, d("name", "deep"),
				options.ListDatabases().SetNameOnly(true))
			err3 := db.CreateView(ctx, "v", "c", []bson.D{d("$match", d("_id", 1))})
			err4 := db.CreateView(ctx, "v", "c", []bson.D{})
			specs, err5 := db.ListCollectionSpecifications(ctx, d("name", "v"))
			return []any{names, err, dbs, err2, err3, err4, specs, err5, db.Collection("none").Drop(ctx),
				db.Collection("v").Drop(ctx), db.Drop(ctx)}
		}},
		{name: "run command", run: func(c *mongo.Collection) []any {
			var out bson.M
			err := c.Database().RunCommand(ctx, d("count", "c", "query", d("_id", 1))).Decode(&out)
			cur, err2 := c.Database().RunCommandCursor(ctx, d("find", "c", "batchSize", 1))
			var all []bson.D
			err3 := cur.All(ctx, &all)
			return []any{out["n"], err, err2, err3, all,
				c.Database().RunCommand(ctx, d("ping", 1),
					options.RunCmd().SetReadPreference(readpref.Nearest())).Err()}
		}},
		{name: "secrets", run: func(c *mongo.Collection) []any {
			db := c.Database()
			return []any{
				db.RunCommand(ctx, d("createUser", "u", "pwd", "p", "roles", bson.A{})).Err(),
				db.RunCommand(ctx, d("createUser", "u", "pwd", "p", "roles", bson.A{})).Err(),
				db.RunCommand(ctx, d("updateUser", "u", "pwd", "q")).Err(),
				db.RunCommand(ctx, d("saslStart", 1, "mechanism", "NONE", "payload", []byte{})).Err(),
				db.RunCommand(ctx, d("saslContinue", 1, "conversationId", 1, "payload", []byte{})).Err(),
				db.RunCommand(ctx, d("getnonce", 1)).Err(), db.RunCommand(ctx, d("authenticate", 1)).Err(),
				db.RunCommand(ctx, d("copydbgetnonce", 1)).Err(), db.RunCommand(ctx, d("copydb", 1)).Err(),
				db.RunCommand(ctx, d("hello", 1)).Err(), db.RunCommand(ctx, d("isMaster", 1)).Err(),
				db.RunCommand(ctx, d("hello", 1, "speculativeAuthenticate", d("saslStart", 1))).Err(),
				db.RunCommand(ctx, d("ismaster", 1, "speculativeAuthenticate", d("saslStart", 1))).Err(),
				db.RunCommand(ctx, d("dropUser", "u")).Err(),
			}
		}},
		{name: "unacknowledged", opts: []ClientOption{unacknowledged}, run: func(c *mongo.Collection) []any {
			r, err := c.InsertOne(ctx, d("_id", 20))
			m, err2 := c.InsertMany(ctx, []any{d("_id", 21), d("_id", 1)})
			u, err3 := c.UpdateOne(ctx, d("_id", 1), d("$set", d("a", 1)))
			del, err4 := c.DeleteOne(ctx, d("_id", 2))
			b, err5 := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(d("_id", 22)),
				mongo.NewDeleteOneModel().SetFilter(d("_id", 3))})
			err6 := c.FindOneAndDelete(ctx, d("_id", 1)).Err()
			return []any{r, err, m, err2, u, err3, del, err4, b, err5, err6}
		}},
		{name: "concerns", opts: []ClientOption{options.Client().SetReadConcern(readconcern.Majority()).
			SetWriteConcern(&writeconcern.WriteConcern{W: 1, Journal: &yes}).
			SetReadPreference(readpref.PrimaryPreferred())},
			run: func(c *mongo.Collection) []any {
				_, err := c.InsertOne(ctx, d("_id", 20))
				other := clone(c, newCollectionOptions().SetReadConcern(readconcern.Local()).
					SetWriteConcern(&writeconcern.WriteConcern{W: 9}).SetReadPreference(readpref.Secondary()))
				_, err2 := other.InsertOne(ctx, d("_id", 21))
				_, err3 := other.InsertMany(ctx, []any{d("_id", 22)})
				cur, err4 := other.Aggregate(ctx, []bson.D{d("$match", d()), d("$out", "o")})
				var all []bson.D
				if cur != nil {
					err4 = errors.Join(err4, cur.All(ctx, &all))
				}
				return []any{err, err2, err3, err4, len(all), c.FindOne(ctx, d()).Err(), c.Drop(ctx)}
			}},
		{name: "server api", opts: []ClientOption{options.Client().SetServerAPIOptions(
			options.ServerAPI(options.ServerAPIVersion1).SetStrict(true).SetDeprecationErrors(true))},
			run: func(c *mongo.Collection) []any {
				_, err := c.InsertOne(ctx, d("_id", 20))
				_, err2 := distinct(ctx, c, "x", d())
				cur, err3 := c.Find(ctx, d(), options.Find().SetBatchSize(1))
				var all []bson.D
				return []any{err, err2, err3, cur.All(ctx, &all), c.Database().RunCommand(ctx, d("ping", 1)).Err(),
					transaction(c, func(ctx InSession) (any, error) { return c.InsertOne(ctx, d("_id", 77)) })}
			}},
		{name: "session", run: func(c *mongo.Collection) []any {
			return []any{c.Database().Client().UseSession(ctx, func(ctx InSession) error {
				_, err := c.InsertOne(ctx, d("_id", 20))
				return errors.Join(err, c.FindOne(ctx, d()).Err())
			}), c.Database().Client().UseSessionWithOptions(ctx, options.Session().SetCausalConsistency(false),
				func(ctx InSession) error {
					_, err := c.InsertOne(ctx, d("_id", 21))
					return errors.Join(err, c.FindOne(ctx, d()).Err())
				}), c.Database().Client().UseSessionWithOptions(ctx, options.Session().SetSnapshot(true),
				func(ctx InSession) error {
					_, err := c.InsertOne(ctx, d("_id", 22))
					_, err2 := distinct(ctx, c, "x", d())
					return errors.Join(err, c.FindOne(ctx, d()).Err(), err2)
				})}
		}},
		{name: "transaction", run: func(c *mongo.Collection) []any {
			return []any{transaction(c, func(ctx InSession) (any, error) {
				_, err := c.InsertOne(ctx, d("_id", 30))
				must(err)
				cur, err := c.Find(ctx, d(), options.Find().SetBatchSize(2))
				must(err)
				var all []bson.D
				must(cur.All(ctx, &all))
				_, err = c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(d("_id", 31)),
					mongo.NewDeleteOneModel().SetFilter(d("_id", 3))})
				return len(all), err
			}, options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority()))}
		}},
		{name: "transaction aborts", run: func(c *mongo.Collection) []any {
			return []any{transaction(c, func(ctx InSession) (any, error) {
				_, err := c.InsertOne(ctx, d("_id", 1))
				return 5, err
			}), transaction(c, func(ctx InSession) (any, error) { return 6, errors.New("mine") }),
				transaction(c, func(ctx InSession) (any, error) { return 7, nil })}
		}},
		{name: "stream", run: func(c *mongo.Collection) []any {
			s, err := c.Watch(ctx, []bson.D{d("$match", d("operationType", "insert"))}, options.ChangeStream().
				SetFullDocument(options.UpdateLookup).SetBatchSize(3).SetComment("c").SetShowExpandedEvents(true))
			must(err)
			_, err = admin.Database("deep").Collection("c").InsertOne(ctx, d("_id", 9))
			must(err)
			ok := s.Next(ctx)
			return []any{ok, s.Err(), s.Close(ctx)}
		}},
	}
}

// transaction calls f in a transaction, and returns what that returns.
func transaction(c *mongo.Collection, f func(InSession) (any, error), opts ...TransactionOption) []any {
	s, err := c.Database().Client().StartSession()
	must(err)
	defer s.EndSession(context.Background())
	calls := 0
	res, err := s.WithTransaction(ctx, func(ctx InSession) (any, error) {
		calls++
		return f(ctx)
	}, opts...)
	if r, ok := res.(*mongo.InsertOneResult); ok && r != nil {
		res = r.InsertedID
	}
	return []any{res, err, calls}
}
