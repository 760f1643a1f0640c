package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	official "go.mongodb.org/mongo-driver/v2/bson"

	"allium"
	"allium/bench/internal/nullserver"
	"allium/bson"
)

// sample is nullserver.Sample for either driver.
type sample[ID, Time any] struct {
	ID      ID      `bson:"_id,omitempty"`
	Name    string  `bson:"name"`
	Email   string  `bson:"email"`
	Age     int32   `bson:"age"`
	Balance float64 `bson:"balance"`
	Active  bool    `bson:"active"`
	Created Time    `bson:"created"`
	City    string  `bson:"city"`
	Visits  int64   `bson:"visits"`
	Notes   string  `bson:"notes"`
}

type (
	ourSample   = sample[bson.ObjectID, time.Time]
	theirSample = sample[official.ObjectID, time.Time]
)

func newSample[ID any]() sample[ID, time.Time] {
	s := nullserver.NewSample()
	return sample[ID, time.Time]{Name: s.Name, Email: s.Email, Age: s.Age, Balance: s.Balance, Active: s.Active,
		Created: time.UnixMilli(int64(s.Created)).UTC(), City: s.City, Visits: s.Visits, Notes: s.Notes}
}

// nullTasks measure the clients alone, against a server that answers at once.
func nullTasks(env *Env) ([]Task, error) {
	uri, _, err := env.Null()
	if err != nil {
		return nil, err
	}
	ours, theirs, err := env.Clients(uri)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	ourDB, theirDB := ours.Database("db"), theirs.Database("db")
	many := fmt.Sprint(nullserver.ManyDocs)
	bareFind, err := env.PingPong(170, 300) // what they send and get, about
	if err != nil {
		return nil, err
	}
	bareInsert, err := env.PingPong(290, 50)
	if err != nil {
		return nil, err
	}
	find := Task{Name: "null/find one", CPU: 0.42, // 2 of 4.8 times the bare ping-pong
		CPUOfC: 0.85, C: env.cTask(uri, "find_sample", "db", nullserver.One), Values: sampleValues, Bare: bareFind,
		Allium: func(n int) error {
			c := allium.CollectionOf[ourSample](ourDB, nullserver.One)
			for range n {
				if s, err := c.FindOne(ctx, bson.D{{Key: "_id", Value: nullserver.FileID}}); err != nil || s.Age != 36 {
					return fmt.Errorf("%+v: %w", s, err)
				}
			}
			return nil
		},
		Official: func(n int) error {
			c := theirDB.Collection(nullserver.One)
			for range n {
				var s theirSample
				if err := c.FindOne(ctx, official.D{{Key: "_id",
					Value: official.ObjectID(nullserver.FileID)}}).Decode(&s); err != nil || s.Age != 36 {
					return fmt.Errorf("%+v: %w", s, err)
				}
			}
			return nil
		}}
	insert := Task{Name: "null/insert one", CPUOfC: 0.85, C: env.cTask(uri, "insert_sample", "db", "c"),
		Values: idValues(1), Bare: bareInsert,
		Allium: func(n int) error {
			c := allium.CollectionOf[ourSample](ourDB, "c")
			s := newSample[bson.ObjectID]()
			for range n {
				if _, err := c.InsertOne(ctx, s); err != nil {
					return err
				}
			}
			return nil
		},
		Official: func(n int) error {
			c := theirDB.Collection("c")
			s := newSample[official.ObjectID]()
			for range n {
				if _, err := c.InsertOne(ctx, s); err != nil {
					return err
				}
			}
			return nil
		}}
	findMany := Task{Name: "null/find 10,000", CPU: 0.3, CPUOfC: 0.5,
		C: env.cTask(uri, "find_samples", "db", nullserver.Many, many), Values: sampleValues,
		Allium: repeat(func() error {
			cur, err := allium.CollectionOf[ourSample](ourDB, nullserver.Many).Find(ctx, bson.D{})
			if err != nil {
				return err
			}
			n := 0
			for _, err := range cur.Seq(ctx) {
				if err != nil {
					return err
				}
				n++
			}
			return expect(n, nullserver.ManyDocs)
		}),
		Official: repeat(func() error {
			cur, err := theirDB.Collection(nullserver.Many).Find(ctx, official.D{})
			if err != nil {
				return err
			}
			n := 0
			for cur.Next(ctx) {
				var s theirSample
				if err := cur.Decode(&s); err != nil {
					return err
				}
				n++
			}
			return errors.Join(cur.Close(ctx), expect(n, nullserver.ManyDocs))
		})}
	ourDocs, theirDocs := make([]ourSample, nullserver.ManyDocs), make([]theirSample, nullserver.ManyDocs)
	for i := range ourDocs {
		ourDocs[i], theirDocs[i] = newSample[bson.ObjectID](), newSample[official.ObjectID]()
	}
	bulk := Task{Name: "null/insert many 10,000", CPU: 0.4, CPUOfC: 0.5,
		C: env.cTask(uri, "insert_samples", "db", "c", many), Values: idValues(nullserver.ManyDocs),
		Allium: repeat(func() error {
			_, err := allium.CollectionOf[ourSample](ourDB, "c").InsertMany(ctx, ourDocs)
			return err
		}),
		Official: repeat(func() error {
			_, err := theirDB.Collection("c").InsertMany(ctx, theirDocs)
			return err
		})}
	tasks := []Task{find, insert, findMany, bulk}
	for i := range tasks {
		tasks[i].Bytes = 0
	}
	files, err := nullFileTasks(env, uri, ours, theirs)
	return append(tasks, files...), err
}

func expect(got, want int) error {
	if got != want {
		return fmt.Errorf("got %d, want %d", got, want)
	}
	return nil
}

// pingPong returns a function that sends messages of one size and reads messages of another.
func pingPong(c net.Conn, in, out int) (func(n int) error, error) {
	var sizes [8]byte
	binary.LittleEndian.PutUint32(sizes[:], uint32(in))
	binary.LittleEndian.PutUint32(sizes[4:], uint32(out))
	if _, err := c.Write(sizes[:]); err != nil {
		return nil, err
	}
	request, reply := make([]byte, in), make([]byte, out)
	return repeat(func() error {
		if _, err := c.Write(request); err != nil {
			return err
		}
		_, err := io.ReadFull(c, reply)
		return err
	}), nil
}
