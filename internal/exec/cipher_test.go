package exec

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/session"
	"allium/mongoerr"
	"allium/mongotest"
)

// rot is a Cipher that marks what it has seen.
type rot struct {
	commands []bson.Raw
	err      error
	same     bool
	slow     time.Duration
	unread   error  // of Decrypt, for replies with a cursor
	meets    func() // code of the program's that runs while the cipher is at it
}

func (c *rot) Encrypt(ctx context.Context, db string, cmd bson.Raw) (bson.Raw, error) {
	c.commands = append(c.commands, bytes.Clone(cmd))
	if meets := c.meets; meets != nil {
		c.meets = nil
		meets()
	}
	if c.slow > 0 {
		select {
		case <-time.After(c.slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if c.err != nil || c.same {
		return cmd, c.err
	}
	start, dst := bson.BeginDocument(nil)
	dst = append(dst, cmd.Elements()...)
	return bson.EndDocument(bson.AppendInt32(dst, "sealed", int32(len(c.commands))), start), nil
}

func (c *rot) Decrypt(_ context.Context, reply bson.Raw) (bson.Raw, error) {
	if c.unread != nil && hasOpenCursor(reply) {
		return nil, c.unread
	}
	start, dst := bson.BeginDocument(nil)
	dst = append(dst, reply.Elements()...)
	return bson.EndDocument(bson.AppendString(dst, "opened", "yes"), start), c.err
}

// numbered is n documents with an _id.
type numbered int

func (n numbered) Len() int { return int(n) }

func (n numbered) Append(dst []byte, i int) ([]byte, error) {
	start, dst := bson.BeginDocument(dst)
	return bson.EndDocument(bson.AppendInt32(dst, "_id", int32(i)), start), nil
}

// insertOf is an insert of n documents.
func insertOf(n int) *command.Insert { return &command.Insert{Collection: "c", Docs: numbered(n)} }

func TestCipher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &rot{}
		r := newRig(t, Config{Cipher: c, RetryReads: true, RetryWrites: true})
		var bodies []bson.Raw
		r.d.OnCommand(func(cmd *mongotest.Command) (bson.Raw, error) {
			if cmd.Name == "insert" || cmd.Name == "find" {
				bodies = append(bodies, bytes.Clone(cmd.Body))
			}
			return r.answer(cmd)
		})
		// What is sent beside the body is seen as an array, and sent as one.
		if _, err := r.play(t.Context(), &Op{Command: insertOf(3), DB: "db", Kind: Write, Retryable: true}, outcome{drop: true}); err != nil {
			t.Fatal(err)
		}
		if len(c.commands) != 1 || len(bodies) != 2 {
			t.Fatalf("encrypted %d times, sent %d times", len(c.commands), len(bodies))
		}
		docs, ok := c.commands[0].Lookup("documents").Array()
		if !ok || !bson.Equal(docs, bson.Raw(bodies[1].Lookup("documents").Value)) || docs.Lookup("2", "_id").IsZero() || !c.commands[0].Lookup("$db").IsZero() {
			t.Errorf("encrypted %s, sent %s", c.commands[0], bodies[1])
		}
		for i, b := range bodies {
			if n, _ := b.Lookup("sealed").Int32(); n != 1 || b.Lookup("lsid").IsZero() || b.Lookup("$db").IsZero() {
				t.Errorf("%d: %s", i, b)
			}
		}
		res, err := r.x.Run(t.Context(), &Op{Command: &command.Find{Collection: "c", Filter: bson.D{}}, DB: "db", Retryable: true})
		if err != nil {
			t.Fatal(err)
		}
		if s, _ := res.Reply.Lookup("opened").StringValue(); s != "yes" {
			t.Errorf("reply %s", res.Reply)
		}
		res.Release()

		c.same = true // what is not encrypted goes out as ever
		if _, err := r.play(t.Context(), &Op{Command: insertOf(2), DB: "db", Kind: Write}); err != nil {
			t.Fatal(err)
		}
		if last := bodies[len(bodies)-1]; !last.Lookup("sealed").IsZero() {
			t.Errorf("%s", last)
		}
	})
}

func TestCipherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &rot{err: errors.New("refused")}
		r := newRig(t, Config{Cipher: c, RetryReads: true})
		op := &Op{Command: &command.Find{Collection: "c", Filter: bson.D{}}, DB: "db", Retryable: true}
		seen, err := r.play(t.Context(), op)
		if !errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), "find db.c: ") || len(seen) != 0 || len(c.commands) != 1 {
			t.Errorf("%v; sent %v", err, seen)
		}
		// The time of the operation is the cipher's, too.
		c.err, c.slow = nil, time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if seen, err = r.play(ctx, op); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second || len(seen) != 0 {
			t.Errorf("%v after %v; sent %v", err, time.Since(began), seen)
		}
	})
}

// A reply that cannot be decrypted leaves neither a cursor nor a session.
func TestUndecryptedCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &rot{same: true}
		r := newRig(t, Config{Cipher: c})
		var kills atomic.Int32
		r.d.OnCommand(func(cmd *mongotest.Command) (bson.Raw, error) { // the commands are run, and not scripted
			if cmd.Name == "killCursors" {
				kills.Add(1)
			}
			return nil, nil
		})
		if _, err := r.x.Run(t.Context(), &Op{Command: insertOf(5), DB: "db", Kind: Write}); err != nil {
			t.Fatal(err)
		}
		c.unread = errors.New("no key")
		op := &Op{Command: &command.Find{Collection: "c", Filter: bson.D{}, BatchSize: new(int32(2))}, DB: "db", KeepSession: true}
		if _, err := r.x.Run(t.Context(), op); !errors.Is(err, c.unread) {
			t.Errorf("%v, want %v", err, c.unread)
		}
		synctest.Wait()
		if n := kills.Load(); n != 1 {
			t.Errorf("%d cursors were killed, want 1", n)
		}
	})
}

// While a command is encrypted its session is free. When the transaction it belongs to has ended
// meanwhile, the command is not sent: outside of it, it would take effect at once.
func TestTransactionEndsWhileEncrypting(t *testing.T) {
	for name, tc := range map[string]struct {
		ends func(ctx context.Context, x *Executor, s *session.Session) error
		want error
	}{
		"the client is closed": {func(ctx context.Context, x *Executor, _ *session.Session) error {
			x.Close()
			x.AbortAll(ctx, ctx)
			return nil
		}, mongoerr.ErrClientClosed},
		"commit": {func(ctx context.Context, x *Executor, s *session.Session) error {
			return x.Commit(ctx, s, Limit{})
		}, session.ErrConcurrent},
		"abort": {func(ctx context.Context, x *Executor, s *session.Session) error {
			return x.Abort(ctx, s, Limit{})
		}, session.ErrConcurrent},
		"another transaction": {func(ctx context.Context, x *Executor, s *session.Session) error {
			return errors.Join(x.Abort(ctx, s, Limit{}), s.StartTransaction(session.TransactionOptions{}))
		}, session.ErrConcurrent},
		"nothing": {func(context.Context, *Executor, *session.Session) error { return nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &rot{same: true}
				r := newRig(t, Config{Cipher: c, RetryWrites: true})
				s := r.begin(t, nil)
				defer s.End()
				if _, err := r.play(t.Context(), in(s, &Op{Command: insertOf(1), DB: "db", Kind: Write, Retryable: true})); err != nil {
					t.Fatal(err)
				}
				c.meets = func() {
					if err := tc.ends(t.Context(), r.x, s); err != nil {
						t.Error(err)
					}
				}
				sent, err := r.play(t.Context(), in(s, &Op{Command: insertOf(1), DB: "db", Kind: Write, Retryable: true}))
				inserts := 0
				for _, c := range sent {
					if c.name == "insert" {
						inserts++
					}
				}
				if !errors.Is(err, tc.want) || (inserts == 1) != (tc.want == nil) {
					t.Errorf("%v, %d inserts were sent; want %v", err, inserts, tc.want)
				}
			})
		})
	}
}

func TestAppendArrays(t *testing.T) {
	for _, bad := range []string{"\x00", "\x01\x05\x00\x00\x00", "\x01\xff\x00\x00\x00x\x00", "\x01\x06\x00\x00\x00xy", "\x01\x08\x00\x00\x00x\x00\x05\x00"} {
		if out, err := appendArrays(nil, []byte(bad)); err == nil {
			t.Errorf("%q: %x", bad, out)
		}
	}
}
