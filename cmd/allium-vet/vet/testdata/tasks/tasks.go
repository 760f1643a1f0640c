// Package tasks has six ordinary tasks, each with mistakes that compile.
package tasks

import (
	"context"
	"net/http"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

type user struct {
	ID    bson.ObjectID `bson:"_id,omitempty"`
	Name  string        `bson:"name"`
	Email string        `bson:"email,omitempty"`
}

type shop struct {
	client *allium.Client
	users  *allium.Collection[user]
}

// find answers with one user.
func (s *shop) find(w http.ResponseWriter, r *http.Request) {
	u, err := s.users.FindOne(context.Background(), bson.M{"name": bson.M{"$equals": r.FormValue("name")}}) // want `FindOne does not end with the request r, and has no deadline` `unknown operator of filters \$equals`
	if err == mongoerr.ErrNoDocuments {                                                                     // want `use errors.Is`
		http.NotFound(w, r)
		return
	}
	w.Write([]byte(u.Name))
}

// names lists them in an order.
func (s *shop) names(ctx context.Context, max int) (names []string, err error) {
	cur, err := s.users.Find(ctx, bson.M{}, allium.FindOptions{Sort: bson.M{"name": 1, "_id": 1}}) // want `cur is not closed` `the order of the keys decides in a sort`
	if err != nil {
		return nil, err
	}
	for cur.Next(ctx) {
		if names = append(names, cur.Current().Name); len(names) == max {
			return names, nil
		}
	}
	return names, cur.Err()
}

// move does two writes or none.
func (s *shop) move(ctx context.Context, from, to bson.ObjectID) error {
	return s.client.Transact(ctx, func(tx context.Context) error {
		if _, err := s.users.UpdateOne(tx, bson.M{"_id": from}, bson.M{"$inc": bson.M{"points": -1}}); err != nil {
			return err
		}
		_, err := s.users.UpdateOne(ctx, bson.M{"_id": to}, bson.M{"$inc": bson.M{"points": 1}}) // want `UpdateOne runs outside the transaction`
		return err
	})
}

// getOrCreate finds a user, or makes one.
func (s *shop) getOrCreate(ctx context.Context, name string) (user, error) {
	return s.users.FindOneAndUpdate(ctx, bson.M{"name": name}, bson.M{"name": name}, // want `FindOneAndUpdate needs operators`
		allium.FindOneAndUpdateOptions{Upsert: true})
}

// store writes what a form has: whoever empties the field of the address keeps it.
func (s *shop) store(ctx context.Context, u user) error {
	_, err := s.users.UpdateOne(ctx, bson.M{"_id": u.ID}, bson.M{"$set": u}) // want `\$set of a whole tasks.user cannot clear email`
	return err
}

// watch follows the changes.
func (s *shop) watch(ctx context.Context, f func(user)) error {
	stream, err := s.users.Watch(ctx, bson.A{bson.M{"$match": bson.M{"operationType": "insert"}}, bson.M{"$sort": bson.M{"_id": 1}}}) // want `stream is not closed` `\$sort is no stage of a change stream`
	if err != nil {
		return err
	}
	for stream.Next(ctx) {
		f(*stream.Current().FullDocument)
	}
	return stream.Err()
}

// insert counts what was inserted.
func (s *shop) insert(ctx context.Context, users []user) (int, error) {
	res, err := s.users.InsertMany(ctx, users)
	return len(res.InsertedIDs), err
}
