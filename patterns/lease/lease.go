// Package lease lets one of several copies of a program do something: a lease is held by its name
// for a time, is renewed while the work goes on, and passes on when its holder has died.
//
//	leases := db.Collection("leases")
//	err := lease.Run(ctx, leases, "mailer", func(ctx context.Context, l *lease.Lease) error {
//		return work(ctx) // ctx ends when the lease is lost
//	})
//
// A lease is a document in the collection, whose _id is the name. Its time is the server's: the
// clocks of the programs do not matter, as long as they run equally fast. Acknowledged by a
// majority, it outlives elections.
//
// No lease of any system keeps a holder that was suspended from going on with a write that it has
// begun. What must not be done by two holders is therefore fenced: each holder gets a Token higher
// than all before. Lease.Fence in a transaction lets it commit only while the lease is held;
// without transactions, store the token with what is written and make writes conditional on it.
//
// It needs MongoDB 4.2 or newer.
package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/option"
	"allium/mongoerr"
	"allium/patterns/internal/again"
	"allium/patterns/internal/settled"
)

var (
	// ErrHeld is returned by TryAcquire if somebody else holds the lease. The error is a
	// *HeldError.
	ErrHeld = errors.New("lease is held")
	// ErrLost is the cause of the end of a lease's context, and the error of Fence, if the lease
	// has passed on, was broken, or could not be renewed in time.
	ErrLost = errors.New("lease is lost")
)

// A HeldError says who holds a lease. errors.Is(err, ErrHeld) holds for it.
type HeldError struct {
	// Info is the lease as it was found.
	Info Info
}

// Error returns the lease's name, its holder and until when it lasts.
func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %q is held by %s until %s", e.Info.Name, e.Info.Holder,
		e.Info.Until.UTC().Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Info is a lease as it stands in the collection.
type Info struct {
	// Name is what the lease is for.
	Name string `bson:"_id"`
	// Holder says who has it, or had it: host, process and a random part. It is empty if the lease
	// was released or broken.
	Holder string `bson:"holder"`
	// Token is the number of this holder. It grows with each.
	Token int64 `bson:"token"`
	// Since is when the holder got it, and Until when it ends unless it is renewed, by the
	// server's clock.
	Since time.Time `bson:"since"`
	Until time.Time `bson:"until"`
	// Now is the time of the server when Read found the lease.
	Now time.Time `bson:"now,omitempty"`
}

// Held reports whether somebody held the lease when Read found it.
func (i Info) Held() bool { return i.Holder != "" && i.Until.After(i.Now) }

// Options are the options of Acquire, TryAcquire and Run.
type Options struct {
	// TTL is how long a lease outlives its holder's last sign of life. Zero: 30 seconds. A shorter
	// one passes on sooner, and is lost by shorter interruptions, such as elections. It is at
	// least 10 milliseconds.
	TTL time.Duration
	// Renew is how often it is renewed. Zero: a third of TTL.
	Renew time.Duration
	// Poll is how often Acquire and Run ask for a lease that somebody else holds. Zero: a tenth of
	// TTL, and at most a second.
	Poll time.Duration
}

// A Lease is one that this program holds. Its methods are safe for concurrent use.
type Lease struct {
	coll   *allium.Collection[Info]
	name   string
	holder string
	token  int64
	opts   Options

	ctx  context.Context
	end  context.CancelCauseFunc
	done chan struct{} // closed when nobody renews it any more
	once sync.Once
}

// Acquire waits until it gets the lease, which the caller must Release. coll must be one whose
// documents are leases. The error is that of ctx, or of the server.
func Acquire(ctx context.Context, coll allium.AnyCollection, name string, opts ...Options) (*Lease, error) {
	l := prepare(ctx, coll, name, opts)
	for {
		err := l.take(ctx)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, ErrHeld) {
			l.end(nil)
			return nil, err
		}
		// Not all at once, when several wait.
		if !again.Pause(ctx, l.opts.Poll/2+rand.N(l.opts.Poll)) {
			l.end(nil)
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// TryAcquire gets the lease if nobody else holds it, and returns a *HeldError otherwise.
func TryAcquire(ctx context.Context, coll allium.AnyCollection, name string, opts ...Options) (*Lease, error) {
	l := prepare(ctx, coll, name, opts)
	if err := l.take(ctx); err != nil {
		l.end(nil) // what the caller's context has of it
		return nil, err
	}
	return l, nil
}

// Run waits for the lease, calls fn, and releases the lease. fn's context ends when the lease is
// lost, with the cause ErrLost, which Run then returns beside fn's error. To give the lease back it
// takes five seconds at most, also when ctx has ended.
func Run(ctx context.Context, coll allium.AnyCollection, name string, fn func(ctx context.Context, l *Lease) error,
	opts ...Options) error {
	l, err := Acquire(ctx, coll, name, opts...)
	if err != nil {
		return err
	}
	defer again.Lastly(ctx, l.Release)
	err = fn(l.Context(), l)
	if cause := context.Cause(l.ctx); errors.Is(cause, ErrLost) && !errors.Is(err, ErrLost) {
		err = errors.Join(cause, err)
	}
	return err
}

// Read returns the lease of this name. One that nobody ever held has no holder and the token 0.
func Read(ctx context.Context, coll allium.AnyCollection, name string) (Info, error) {
	cur, err := settled.Collection[Info](coll).Aggregate(ctx, bson.A{
		bson.D{{Key: "$match", Value: bson.D{{Key: "_id", Value: name}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "now", Value: "$$NOW"}}}},
	})
	if err != nil {
		return Info{}, err
	}
	list, err := cur.All(ctx)
	if err != nil || len(list) == 0 {
		return Info{Name: name}, err
	}
	return list[0], nil
}

// Break ends a lease whoever holds it: its holder loses it with the next renewal, and what it
// fences fails at once. It is for people who know that the holder has died.
func Break(ctx context.Context, coll allium.AnyCollection, name string) error {
	_, err := settled.Collection[Info](coll).UpdateOne(ctx, bson.D{{Key: "_id", Value: name}}, bson.A{set(
		"holder", "", "token", bson.D{{Key: "$add", Value: bson.A{"$token", 1}}}, "until", "$$NOW")})
	return err
}

func prepare(ctx context.Context, coll allium.AnyCollection, name string, opts []Options) *Lease {
	o := option.Merge(opts)
	if o.TTL == 0 {
		o.TTL = 30 * time.Second
	}
	o.TTL = max(o.TTL, 10*time.Millisecond)
	if o.Renew <= 0 {
		o.Renew = o.TTL / 3
	}
	if o.Poll <= 0 {
		o.Poll = min(o.TTL/10, time.Second)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	l := &Lease{coll: settled.Collection[Info](coll), name: name, opts: o,
		holder: fmt.Sprintf("%s/%d/%s", host, os.Getpid(), bson.NewObjectID().Hex()), done: make(chan struct{})}
	l.ctx, l.end = context.WithCancelCause(ctx)
	return l
}

// set is a stage that sets fields to expressions.
func set(pairs ...any) bson.D {
	var d bson.D
	for i := 0; i < len(pairs); i += 2 {
		d = append(d, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return bson.D{{Key: "$set", Value: d}}
}

// ends is when a lease ends that is taken or renewed now.
func (l *Lease) ends() bson.D {
	return bson.D{{Key: "$add", Value: bson.A{"$$NOW", l.opts.TTL.Milliseconds()}}}
}

// take gets the lease if it is free. A command that was sent twice, because the first reply was
// lost, finds the lease held by this holder and changes nothing.
func (l *Lease) take(ctx context.Context) error {
	me := bson.D{{Key: "$literal", Value: l.holder}}
	mine := bson.D{{Key: "$eq", Value: bson.A{"$holder", me}}}
	free := bson.D{{Key: "$or", Value: bson.A{mine,
		bson.D{{Key: "$not", Value: bson.A{bson.D{{Key: "$gt", Value: bson.A{"$until", "$$NOW"}}}}}}}}}
	choose := func(cond, then, otherwise any) bson.D {
		return bson.D{{Key: "$cond", Value: bson.A{cond, then, otherwise}}}
	}
	next := bson.D{{Key: "$add", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{"$token", 0}}}, int64(1)}}}
	update := bson.A{set(
		"holder", choose(free, me, "$holder"),
		"token", choose(mine, "$token", choose(free, next, "$token")),
		"since", choose(mine, "$since", choose(free, "$$NOW", "$since")),
		"until", choose(free, l.ends(), "$until"),
	)}
	for {
		sent := time.Now()
		found, err := l.coll.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: l.name}}, update,
			allium.FindOneAndUpdateOptions{Upsert: true, ReturnNew: true})
		switch {
		case errors.Is(err, mongoerr.ErrDuplicateKey):
			continue // two made the document at once: now it is there
		case err != nil:
			return fmt.Errorf("lease %q: %w", l.name, err)
		case found.Holder != l.holder:
			return &HeldError{Info: found}
		case time.Since(sent) > l.opts.TTL/3:
			continue // it has waited, for an open transaction of a holder that died: too late to count from then
		}
		l.token = found.Token
		go l.renew(sent)
		return nil
	}
}

// renew renews the lease until its context ends, or it is lost. sent is when the command was sent
// that got it.
func (l *Lease) renew(sent time.Time) {
	defer close(l.done)
	err := again.Keep(l.ctx, sent, l.opts.TTL, l.opts.Renew, func(ctx context.Context) (bool, error) {
		res, err := l.coll.UpdateOne(ctx, l.own(), bson.A{set("until", l.ends())})
		return res.MatchedCount > 0, err
	})
	if err != nil {
		l.end(fmt.Errorf("%w: %q: %w", ErrLost, l.name, err))
	}
}

// own selects the lease as long as this holder has it.
func (l *Lease) own() bson.D {
	return bson.D{{Key: "_id", Value: l.name}, {Key: "holder", Value: l.holder}, {Key: "token", Value: l.token}}
}

// Context ends when the lease is lost or released, and with the context that it was acquired with.
// Its cause is ErrLost in the first case.
func (l *Lease) Context() context.Context { return l.ctx }

// Token returns the number of this holder: it is higher than that of every holder before.
func (l *Lease) Token() int64 { return l.token }

// Holder returns what Info.Holder is while the lease is held.
func (l *Lease) Holder() string { return l.holder }

// Fence asks the database whether the lease is still held; if it is not the error is ErrLost. In a
// transaction it is a write: the transaction commits only if the lease is held until then, whatever
// time has passed. Such a transaction must be shorter than the TTL, since the lease is not renewed
// while it is open.
func (l *Lease) Fence(ctx context.Context) error {
	res, err := l.coll.UpdateOne(ctx, l.own(), bson.D{{Key: "$inc", Value: bson.D{{Key: "fenced", Value: int64(1)}}}})
	if err != nil {
		return err
	}
	if res.MatchedCount == 0 {
		return fmt.Errorf("%w: %q has passed on", ErrLost, l.name)
	}
	return nil
}

// Release gives the lease up. The next holder need not wait for its end. Only the first call does
// something; a lease that was lost stays with its new holder. If the error is not nil, the lease
// ends by itself.
func (l *Lease) Release(ctx context.Context) (err error) {
	l.once.Do(func() {
		l.end(nil)
		<-l.done
		_, err = l.coll.UpdateOne(ctx, l.own(), bson.A{set("holder", "", "until", "$$NOW")})
	})
	return err
}
