package rig

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/mongoerr"
)

// Operation is an operation that takes a session.
type Operation struct {
	Name  string
	Write bool
	Run   func(ctx context.Context, c *allium.UntypedCollection) error
}

// Operations are those of collections, databases and clients.
var Operations = []Operation{
	{"find", false, func(ctx context.Context, c *allium.UntypedCollection) error {
		cur, err := c.Find(ctx, Everything)
		return Drain(ctx, cur, err)
	}},
	{"findOne", false, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.FindOne(ctx, Everything)
		return err
	}},
	{"aggregate", false, func(ctx context.Context, c *allium.UntypedCollection) error {
		cur, err := c.Aggregate(ctx, []bson.D{})
		return Drain(ctx, cur, err)
	}},
	{"countDocuments", false, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.CountDocuments(ctx, Everything)
		return err
	}},
	{"distinct", false, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := allium.Distinct[any](ctx, c, "x", Everything)
		return err
	}},
	{"insertOne", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.InsertOne(ctx, bson.D{{Key: "x", Value: 1}})
		return err
	}},
	{"insertMany", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.InsertMany(ctx, []bson.D{{{Key: "x", Value: 1}}})
		return err
	}},
	{"updateOne", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.UpdateOne(ctx, Everything, bson.M{"$set": bson.M{"y": 1}})
		return err
	}},
	{"updateMany", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.UpdateMany(ctx, Everything, bson.M{"$set": bson.M{"y": 2}})
		return err
	}},
	{"replaceOne", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.ReplaceOne(ctx, Everything, bson.D{{Key: "y", Value: 3}})
		return err
	}},
	{"deleteOne", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.DeleteOne(ctx, bson.M{"z": 1})
		return err
	}},
	{"deleteMany", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.DeleteMany(ctx, bson.M{"z": 1})
		return err
	}},
	{"findOneAndUpdate", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.FindOneAndUpdate(ctx, Everything, bson.M{"$set": bson.M{"y": 4}})
		return err
	}},
	{"findOneAndReplace", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.FindOneAndReplace(ctx, Everything, bson.D{{Key: "y", Value: 5}})
		return err
	}},
	{"findOneAndDelete", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.FindOneAndDelete(ctx, bson.M{"z": 1})
		if errors.Is(err, mongoerr.ErrNoDocuments) {
			err = nil
		}
		return err
	}},
	{"bulkWrite", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.BulkWrite(ctx, []allium.WriteModel{c.InsertOneModel(bson.D{{Key: "x", Value: 1}})})
		return err
	}},
	{"createIndex", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}})
		return err
	}},
	{"dropIndex", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		return c.DropIndex(ctx, "x_1")
	}},
	{"listIndexes", false, func(ctx context.Context, c *allium.UntypedCollection) error {
		cur, err := c.ListIndexes(ctx)
		return Drain(ctx, cur, err)
	}},
	{"runCommand", false, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.Database().RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})
		return err
	}},
	{"listCollections", false, func(ctx context.Context, c *allium.UntypedCollection) error {
		cur, err := c.Database().ListCollections(ctx)
		return Drain(ctx, cur, err)
	}},
	{"createCollection", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		return c.Database().CreateCollection(ctx, "other")
	}},
	{"dropCollection", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		return c.Database().Collection("other").Drop(ctx)
	}},
	{"listDatabases", false, func(ctx context.Context, c *allium.UntypedCollection) error {
		_, err := c.Database().Client().ListDatabases(ctx)
		return err
	}},
	{"dropDatabase", true, func(ctx context.Context, c *allium.UntypedCollection) error {
		return c.Database().Client().Database("other").Drop(ctx)
	}},
}

type docs = allium.UntypedCollection

// FurtherOperations are the methods and functions that take a session and are not among operations,
// by their receivers, or else their packages, and names. What they do to the deployment does not
// matter: some ask for what it lacks.
var FurtherOperations = map[string]func(ctx context.Context, c *docs) error{
	"Client.BulkWrite": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.Database().Client().BulkWrite(ctx, []allium.WriteModel{c.InsertOneModel(bson.D{})}))
	},
	"Client.Databases": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.Database().Client().Databases(ctx))
	},
	"Client.ListDatabaseNames": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.Database().Client().ListDatabaseNames(ctx))
	},
	"Client.Ping":  func(ctx context.Context, c *docs) error { return c.Database().Client().Ping(ctx) },
	"Client.Ready": func(ctx context.Context, c *docs) error { return c.Database().Client().Ready(ctx) },
	"allium.Save": func(ctx context.Context, c *docs) error {
		before := bson.D{{Key: "_id", Value: 1}, {Key: "v", Value: int64(1)}}
		after := bson.D{{Key: "_id", Value: 1}, {Key: "v", Value: int64(1)}, {Key: "x", Value: 2}}
		if err := allium.Save(ctx, &c.Collection, "v", before, &after); !errors.Is(err, mongoerr.ErrConflict) {
			return err
		}
		return nil // there is no such document
	},
	"Client.Watch": func(ctx context.Context, c *docs) error {
		return streamClosed(c.Database().Client().Watch(ctx, nil))
	},
	"Collection.All": func(ctx context.Context, c *docs) error { return ErrorOf(c.All(ctx, Everything)) },
	"Collection.Query": func(ctx context.Context, c *docs) (err error) {
		for _, err = range c.Query(ctx, Everything) {
		}
		return err
	},
	"Collection.Count": func(ctx context.Context, c *docs) error { return ErrorOf(c.Count(ctx, Everything)) },
	"Collection.CreateIndexes": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.CreateIndexes(ctx, []allium.IndexModel{{Keys: bson.D{{Key: "y", Value: 1}}}}))
	},
	"Collection.CreateSearchIndex": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.CreateSearchIndex(ctx, allium.SearchIndexModel{Definition: bson.D{}}))
	},
	"Collection.CreateSearchIndexes": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.CreateSearchIndexes(ctx, []allium.SearchIndexModel{{Definition: bson.D{}}}))
	},
	"Collection.DropIndexes": func(ctx context.Context, c *docs) error { return c.DropIndexes(ctx) },
	"Collection.DropSearchIndex": func(ctx context.Context, c *docs) error {
		return c.DropSearchIndex(ctx, "x")
	},
	"Collection.EstimatedDocumentCount": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.EstimatedDocumentCount(ctx))
	},
	"Collection.ListIndexNames": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.ListIndexNames(ctx))
	},
	"Collection.ListSearchIndexes": func(ctx context.Context, c *docs) error {
		cur, err := c.ListSearchIndexes(ctx)
		return Drain(ctx, cur, err)
	},
	"Collection.Rename": func(ctx context.Context, c *docs) error {
		return c.Database().Collection("none").Rename(ctx, "other")
	},
	"Collection.UpdateSearchIndex": func(ctx context.Context, c *docs) error {
		return c.UpdateSearchIndex(ctx, "x", bson.D{})
	},
	"Collection.Watch": func(ctx context.Context, c *docs) error { return streamClosed(c.Watch(ctx, nil)) },
	"Database.Aggregate": func(ctx context.Context, c *docs) error {
		cur, err := c.Database().Aggregate(ctx, []bson.D{{{Key: "$documents", Value: bson.A{}}}})
		return Drain(ctx, cur, err)
	},
	"Database.Collections": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.Database().Collections(ctx))
	},
	"Database.ListCollectionNames": func(ctx context.Context, c *docs) error {
		return ErrorOf(c.Database().ListCollectionNames(ctx))
	},
	"Database.ModifyCollection": func(ctx context.Context, c *docs) error {
		return c.Database().ModifyCollection(ctx, "docs")
	},
	"Database.RunCursorCommand": func(ctx context.Context, c *docs) error {
		cur, err := c.Database().RunCursorCommand(ctx, bson.D{{Key: "find", Value: "docs"}})
		return Drain(ctx, cur, err)
	},
	"allium.Aggregate": func(ctx context.Context, c *docs) error {
		cur, err := allium.Aggregate[bson.M](ctx, c, []bson.D{})
		return Drain(ctx, cur, err)
	},
	"allium.Watch": func(ctx context.Context, c *docs) error {
		return streamClosed(allium.Watch[bson.Raw](ctx, c.Database(), nil))
	},
	"allium.RunCursorCommand": func(ctx context.Context, c *docs) error {
		cur, err := allium.RunCursorCommand[bson.M](ctx, c.Database(), bson.D{{Key: "find", Value: "docs"}})
		return Drain(ctx, cur, err)
	},
	"Bucket.Delete":       func(ctx context.Context, c *docs) error { return Bucket(c).Delete(ctx, 1) },
	"Bucket.DeleteByName": func(ctx context.Context, c *docs) error { return Bucket(c).DeleteByName(ctx, "x") },
	"Bucket.DownloadToStream": func(ctx context.Context, c *docs) error {
		return ErrorOf(Bucket(c).DownloadToStream(ctx, 1, io.Discard))
	},
	"Bucket.DownloadToStreamByName": func(ctx context.Context, c *docs) error {
		return ErrorOf(Bucket(c).DownloadToStreamByName(ctx, "f", io.Discard))
	},
	"Bucket.Drop": func(ctx context.Context, c *docs) error {
		return gridfs.NewBucket(c.Database().Client().Database("other")).Drop(ctx)
	},
	"Bucket.FS": func(ctx context.Context, c *docs) error { return ErrorOf(fs.ReadFile(Bucket(c).FS(ctx), "f")) },
	"Bucket.Find": func(ctx context.Context, c *docs) error {
		cur, err := Bucket(c).Find(ctx, Everything)
		return Drain(ctx, cur, err)
	},
	"Bucket.OpenDownloadStream": func(ctx context.Context, c *docs) error {
		return readAll(Bucket(c).OpenDownloadStream(ctx, 1))
	},
	"Bucket.OpenDownloadStreamByName": func(ctx context.Context, c *docs) error {
		return readAll(Bucket(c).OpenDownloadStreamByName(ctx, "f"))
	},
	"Bucket.OpenUploadStream": func(ctx context.Context, c *docs) error {
		return writeAll(Bucket(c).OpenUploadStream(ctx, "f"))
	},
	"Bucket.OpenUploadStreamWithID": func(ctx context.Context, c *docs) error {
		return writeAll(Bucket(c).OpenUploadStreamWithID(ctx, bson.NewObjectID(), "f"))
	},
	"Bucket.Rename":       func(ctx context.Context, c *docs) error { return Bucket(c).Rename(ctx, 1, "y") },
	"Bucket.RenameByName": func(ctx context.Context, c *docs) error { return Bucket(c).RenameByName(ctx, "x", "y") },
	"Bucket.UploadFromStream": func(ctx context.Context, c *docs) error {
		return ErrorOf(Bucket(c).UploadFromStream(ctx, "f", strings.NewReader("text")))
	},
	"Bucket.UploadFromStreamWithID": func(ctx context.Context, c *docs) error {
		return Bucket(c).UploadFromStreamWithID(ctx, bson.NewObjectID(), "f", strings.NewReader("text"))
	},
	"Database.Watch": func(ctx context.Context, c *docs) error { return streamClosed(c.Database().Watch(ctx, nil)) },
}

// streamClosed closes a change stream.
func streamClosed[T any](s *allium.ChangeStream[T], err error) error {
	if err != nil {
		return err
	}
	return s.Close(context.Background())
}

// Bucket is the GridFS bucket of a collection's database.
func Bucket(c *docs) *gridfs.Bucket { return gridfs.NewBucket(c.Database()) }

// readAll reads a file to its end.
func readAll(s *gridfs.DownloadStream, err error) error {
	if err != nil {
		return err
	}
	defer s.Close()
	return ErrorOf(io.ReadAll(s))
}

// writeAll writes a file.
func writeAll(s *gridfs.UploadStream, err error) error {
	if err != nil {
		return err
	}
	if _, err := s.Write([]byte("text")); err != nil {
		s.Abort()
		return err
	}
	return s.Close()
}
