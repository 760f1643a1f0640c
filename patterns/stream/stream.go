// Package stream handles the changes of a collection, a database or a deployment by a program of
// which several copies may run, and which may be restarted at any time:
//
//	err := stream.Run(ctx, orders, stream.Options[Order]{
//		Name: "mailer", Store: db.Collection("consumers"), Park: db.Collection("parked"),
//		Handle: func(ctx context.Context, ev allium.ChangeEvent[Order]) error { return mail(ev) },
//	})
//
// One copy holds the lease of the name and handles events; another one goes on if it dies. The
// position is stored as the work proceeds, for the first time before anything is handled, and now
// and then while nothing happens.
//
// # What it promises
//
//   - Each event since the first position is handled at least once, however often copies die and
//     servers fail over: Handle returned nil for it, or it was parked. After a crash, what was
//     handled since the position was last stored is handled again.
//   - Events of one key are handled in order: one is not begun before the one in front of it has
//     been handled or parked. The key is the document's, or what Options.Key says. After a
//     takeover the order begins again at the stored position.
//   - A copy that has lost the lease stores no position any more: the write is conditional on the
//     number of its lease.
//   - A copy calls Handle only while it holds the lease by its own clock, and ends the context of
//     Handle before the lease passes on. No system can do more: a program that is suspended just
//     then, or a Handle that ignores its context, may go on while another copy works. What must
//     not happen then is made conditional on Token, which is higher for each holder.
//
// # What cannot be handled
//
// An event whose document does not decode, and one that Handle has refused often enough, is
// parked: it is written into a collection, whole, with the reason, and the stream goes on behind
// it. Relay makes an outbox of this.
package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"allium"
	"allium/bson"
	"allium/mongoerr"
	"allium/patterns/internal/again"
	"allium/patterns/internal/settled"
	"allium/patterns/lease"
)

// ErrRefused is in the error of Run if Handle refused an event, and there is no collection to park
// it in. In an error of Handle, it parks the event at once: see Refuse.
var ErrRefused = errors.New("event is refused")

// Refuse returns an error for Handle to return, which parks the event without further attempts.
func Refuse(reason error) error { return fmt.Errorf("%w: %w", ErrRefused, reason) }

// Options are the options of Run and Relay. Name, Store and Handle must be set.
type Options[T any] struct {
	// Name is that of the consumer, the same for all of its copies.
	Name string
	// Store is where the lease and the position are, as two documents for each name. Their read
	// and write concerns are always majority.
	Store allium.AnyCollection
	// Handle handles an event. Its context ends with that of Run, and before the lease passes on.
	// It may be called again for the same event. If Parallel is more than 1 it must be safe for
	// concurrent use. A panic is an error, which has what it panicked with if that is one.
	Handle func(ctx context.Context, ev allium.ChangeEvent[T]) error
	// Pipeline filters and transforms the events, as that of Collection.Watch.
	Pipeline any
	// Watch are options of the change stream. Where it begins cannot be set.
	Watch allium.WatchOptions
	// Parallel is how many events are handled at once, those of different keys. Zero: 1.
	Parallel int
	// Key returns what events have in common that are handled in order. Nil: the collection and
	// the _id of the document. An event without a document, such as a drop, is handled alone.
	Key func(ev allium.ChangeEvent[T]) string
	// Attempts is how often Handle is called for an event before it is parked. Zero: 10. Negative:
	// for ever.
	Attempts int
	// Backoff is the pause after the first attempt. It doubles with each, up to a minute. Zero:
	// 100 milliseconds.
	Backoff time.Duration
	// Park is where events go that cannot be handled, as Parked. Nil: Run ends with such an event,
	// with ErrRefused.
	Park allium.AnyCollection
	// Begin is called when the stream begins without a position: at the very first time, and after
	// Lost. The stream is open, so that nothing that happens meanwhile is missed. If it fails, Run
	// ends, and the next Run calls it again.
	Begin func(ctx context.Context) error
	// Lost is called when the server no longer has the events behind the position, with its error.
	// If it returns nil, the stream begins now: what happened in between is not handled. Its error
	// ends Run. Nil: the server's error ends Run.
	Lost func(ctx context.Context, err error) error
	// Observe is told how far the stream is, with each position that is stored. It must not block.
	Observe func(p Progress)
	// StoreEvery is how often the position is stored while events are handled, and a tenth as
	// often while there are none. Zero: a second.
	StoreEvery time.Duration
	// Lease are the options of the lease. A TTL that is not set is 15 seconds.
	Lease lease.Options
	// Logger is told what a person might want to know: errors after which Run goes on, events that
	// are parked, leases that come and go. Nil: nobody.
	Logger *slog.Logger

	sweep func(ctx context.Context, c *consumer[T]) error // of Relay, in place of Begin
}

// Progress is how far a stream is.
type Progress struct {
	// Lag is the age of the oldest event that was received and is not handled, by the server's
	// time of the event and the program's clock. It is 0 if there is none.
	Lag time.Duration
	// Pending is how many events were received and are not handled.
	Pending int
	// Handled and Parked count events since this copy got the lease.
	Handled, Parked int64
	// Token is the number of the lease.
	Token int64
}

// Parked is a document in the collection for events that could not be handled.
type Parked struct {
	// ID has the name of the consumer and the token of the event: an event that is parked twice is
	// there once.
	ID struct {
		Name  string   `bson:"name"`
		Event bson.Raw `bson:"event"`
	} `bson:"_id"`
	// Event is the whole event. Without its documents, if it is too large with them: Cut is set
	// then.
	Event bson.Raw `bson:"event"`
	Cut   bool     `bson:"cut,omitempty"`
	// Reason is the error, Attempts how often Handle was called.
	Reason   string    `bson:"reason"`
	Attempts int       `bson:"attempts"`
	At       time.Time `bson:"at"`
}

type tokenKey struct{}

// Token returns the number of the lease that a context of Handle or Begin belongs to: each holder
// has a higher one than those before. It is 0 elsewhere.
func Token(ctx context.Context) int64 {
	n, _ := ctx.Value(tokenKey{}).(int64)
	return n
}

// Run waits for the lease and handles events, until the context ends or something fails that does
// not mend itself. It waits for Handle to return. The error is the context's cause, that of Lost,
// Begin or the server, or it is ErrRefused.
//
// Over is what is watched: a collection, a database or a client.
func Run[T any](ctx context.Context, over allium.Watched, o Options[T]) error {
	if o.Handle == nil {
		return errors.New("stream: Handle is nil")
	}
	return run(ctx, over, o)
}

func run[T any](ctx context.Context, over allium.Watched, o Options[T]) error {
	if err := o.complete(); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	log := o.Logger.With("stream", o.Name)
	for n := 1; ; n++ {
		began := time.Now()
		err := hold(ctx, over, o, log)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, lease.ErrLost) && (!again.Transient(err) || errors.Is(err, errFinal)) {
			return fmt.Errorf("stream %q: %w", o.Name, err)
		}
		log.WarnContext(ctx, "stream is interrupted", "error", err)
		if time.Since(began) > time.Minute {
			n = 1
		}
		if !again.Pause(ctx, again.Backoff(100*time.Millisecond, 10*time.Second, n)) {
			return context.Cause(ctx)
		}
	}
}

// errFinal marks errors of the program's code, which end Run whatever they are.
var errFinal = errors.New("stream ends")

type final struct{ error }

func (f final) Is(target error) bool { return target == errFinal }
func (f final) Unwrap() error        { return f.error }

func (o *Options[T]) complete() error {
	switch {
	case o.Name == "":
		return errors.New("there is no Name")
	case o.Store == nil:
		return errors.New("there is no Store")
	case o.Watch.ResumeAfter != nil || o.Watch.StartAfter != nil || o.Watch.StartAtOperationTime != nil:
		return errors.New("option Watch says where to begin: the stored position does")
	case o.Parallel < 0 || o.Backoff < 0 || o.StoreEvery < 0:
		return errors.New("a number or time is negative")
	}
	for _, d := range []struct {
		v     *time.Duration
		usual time.Duration
	}{{&o.Backoff, 100 * time.Millisecond}, {&o.StoreEvery, time.Second}, {&o.Lease.TTL, 15 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.usual
		}
	}
	if o.Parallel == 0 {
		o.Parallel = 1
	}
	if o.Attempts == 0 {
		o.Attempts = 10
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// hold gets the lease and works until it is lost or something fails.
func hold[T any](ctx context.Context, over allium.Watched, o Options[T], log *slog.Logger) error {
	l, err := lease.Acquire(ctx, o.Store, o.Name, o.Lease)
	if err != nil {
		return err
	}
	// With a context of its own, since ctx may have ended: another copy need not wait.
	defer again.Lastly(ctx, l.Release)
	log = log.With("token", l.Token())
	log.InfoContext(ctx, "stream has the lease")
	work, end := context.WithCancelCause(context.WithValue(l.Context(), tokenKey{}, l.Token()))
	c := &consumer[T]{Options: o, log: log, over: over, place: place{settled.Collection[bson.Raw](o.Store), o.Name,
		l.Token()}, work: work, end: end, room: make(chan struct{}, 64*o.Parallel)}
	err = c.run()
	if cause := context.Cause(work); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// A place is where the position of a consumer is stored, as seen by a holder of its lease.
type place struct {
	coll  *allium.Collection[bson.Raw]
	name  string
	token int64
}

func (p place) id() string { return p.name + ".position" }

// claim returns the position, nil if there is none, and lets no earlier holder store one any more.
func (p place) claim(ctx context.Context) (bson.Raw, error) {
	doc, err := p.coll.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: p.id()},
		{Key: "holder", Value: bson.D{{Key: "$lte", Value: p.token}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "holder", Value: p.token}}}},
		allium.FindOneAndUpdateOptions{Upsert: true, ReturnNew: true})
	if errors.Is(err, mongoerr.ErrDuplicateKey) {
		return nil, fmt.Errorf("%w: %q has a later holder", lease.ErrLost, p.name)
	}
	position, _ := doc.Lookup("position").Document()
	return position, err
}

// store stores the position.
func (p place) store(ctx context.Context, position bson.Raw) error {
	return p.change(ctx, bson.D{{Key: "$set", Value: bson.D{{Key: "position", Value: position}}},
		{Key: "$currentDate", Value: bson.D{{Key: "at", Value: true}}}})
}

// forget stores that there is no position.
func (p place) forget(ctx context.Context) error {
	return p.change(ctx, bson.D{{Key: "$unset", Value: bson.D{{Key: "position", Value: ""}}}})
}

// change changes the document, if no later holder has claimed it.
func (p place) change(ctx context.Context, change bson.D) error {
	res, err := p.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: p.id()}, {Key: "holder", Value: p.token}}, change)
	if err == nil && res.MatchedCount == 0 {
		err = fmt.Errorf("%w: %q has a later holder", lease.ErrLost, p.name)
	}
	return err
}
