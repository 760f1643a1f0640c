package crypt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/fle"
	"allium/internal/flight"
)

// slowVault is a Vault that takes a second, and may do something else before it answers.
type slowVault struct {
	*vault
	before func(ctx context.Context, filter bson.Raw) ([]bson.Raw, error) // nil, nil: what the vault has
}

func (v *slowVault) Keys(ctx context.Context, filter bson.Raw) ([]bson.Raw, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v.before != nil {
		if docs, err := v.before(ctx, filter); docs != nil || err != nil {
			return docs, err
		}
	}
	return v.vault.Keys(ctx, filter)
}

// oddService is a Service of which single keys, by their material, are special.
type oddService struct {
	*local
	odd map[string]func(ctx context.Context) error
}

func (s *oddService) Unwrap(ctx context.Context, key bson.Raw, wrapped []byte) ([]byte, error) {
	if f := s.odd[string(wrapped)]; f != nil {
		if err := f(ctx); err != nil {
			return nil, err
		}
	}
	return s.local.Unwrap(ctx, key, wrapped)
}

// searchRig has keys key0, key1, ... behind a vault that takes a second.
func searchRig(t testing.TB, n int) (*Keys, *slowVault, *oddService, []*Document) {
	_, v, l, docs := rig(t, n, time.Minute)
	slow, odd := &slowVault{vault: v}, &oddService{local: l, odd: map[string]func(context.Context) error{}}
	k := NewKeys(slow, odd, time.Minute)
	t.Cleanup(k.Close)
	return k, slow, odd, docs
}

// idle fails the test if a key is in use, or a search under way, when nobody wants any.
func idle(t testing.TB, k *Keys) {
	t.Helper()
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	for n, c := range k.cached {
		if c.users != 0 {
			t.Errorf("%s is in use by %d", n, c.users)
		}
	}
	if len(k.searches) != 0 {
		t.Errorf("%d searches are under way", len(k.searches))
	}
}

var errOdd = errors.New("odd")

// One search finds key0 for one goroutine, and key0 and something that goes wrong for another: only
// the other one has an error.
func TestErrorsAreNotShared(t *testing.T) {
	for name, tt := range map[string]struct {
		also   string // the other's key, next to key0
		change func(v *slowVault, s *oddService, docs []*Document)
		want   error
		text   string
	}{
		"a missing key": {also: "missing", want: ErrKeyNotFound},
		"a key that cannot be unwrapped": {also: "key1", want: errOdd, change: func(_ *slowVault, s *oddService, docs []*Document) {
			s.odd[string(docs[1].Material)] = func(context.Context) error { return errOdd }
		}},
		"a key that panics": {also: "key1", text: "panic: odd", change: func(_ *slowVault, s *oddService, docs []*Document) {
			s.odd[string(docs[1].Material)] = func(context.Context) error { panic("odd") }
		}},
		"a key of another size": {also: "key1", text: "incorrect length", change: func(v *slowVault, s *oddService, docs []*Document) {
			docs[1].Material = must(fle.WrapKey(s.master, make([]byte, 95), s.random))
			v.docs[1] = docs[1].Append(nil)
		}},
		"a malformed key": {also: "key1", want: errKeyDocument, change: func(v *slowVault, _ *oddService, docs []*Document) {
			v.docs[1] = must(bson.Marshal(bson.D{{Key: "_id", Value: docs[1].ID}, {Key: "keyAltNames", Value: bson.A{"key1"}}}))
		}},
		"an answer that does not fit": {also: "key1", text: "unexpected key", change: func(v *slowVault, _ *oddService, docs []*Document) {
			v.before = func(_ context.Context, filter bson.Raw) ([]bson.Raw, error) {
				if strings.Contains(filter.String(), "key1") {
					return []bson.Raw{v.docs[0], v.docs[2]}, nil
				}
				return nil, nil
			}
		}},
		"a query that fails": {also: "key1", want: errOdd, change: func(v *slowVault, _ *oddService, _ []*Document) {
			v.before = func(_ context.Context, filter bson.Raw) ([]bson.Raw, error) {
				if strings.Contains(filter.String(), "key1") {
					return nil, errOdd
				}
				return nil, nil
			}
		}},
		"a query that panics": {also: "key1", text: "panic: odd", change: func(v *slowVault, _ *oddService, _ []*Document) {
			v.before = func(_ context.Context, filter bson.Raw) ([]bson.Raw, error) {
				if strings.Contains(filter.String(), "key1") {
					panic("odd")
				}
				return nil, nil
			}
		}},
	} {
		for _, both := range [][]string{{"key0", tt.also}, {tt.also, "key0"}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					k, v, s, docs := searchRig(t, 3)
					if tt.change != nil {
						tt.change(v, s, docs)
					}
					go func() {
						_, err := k.Hold(t.Context(), nil, both)
						if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
							t.Errorf("the other's: %v, want %v %q", err, tt.want, tt.text)
						}
					}()
					synctest.Wait()
					for range 5 {
						go func() {
							h, err := k.Hold(t.Context(), nil, []string{"key0"})
							if err != nil {
								t.Error(err)
								return
							}
							h.Release()
						}()
					}
					time.Sleep(time.Minute / 2)
					if n := v.asked(); n > 2 {
						t.Errorf("%d queries", n)
					}
					idle(t, k)
				})
			})
		}
	}
}

// Who gives up does not end the search of those who still wait, whoever has started it; when
// nobody waits any more it ends.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, v, _, docs := searchRig(t, 1)
		ids := []bson.UUID{docs[0].ID}
		first, giveUp := context.WithCancel(t.Context())
		go func() {
			if _, err := k.Hold(first, ids, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("the first: %v", err)
			}
		}()
		synctest.Wait()
		go func() {
			h, err := k.Hold(t.Context(), ids, nil)
			if err != nil {
				t.Errorf("the second: %v", err)
				return
			}
			h.Release()
		}()
		synctest.Wait()
		giveUp()
		time.Sleep(time.Minute / 2)
		if v.asked() != 1 {
			t.Errorf("%d queries", v.asked())
		}
		idle(t, k)

		k.Close()
		over, cancel := context.WithCancel(t.Context())
		ended := false
		v.before = func(ctx context.Context, _ bson.Raw) ([]bson.Raw, error) {
			cancel()
			<-ctx.Done()
			ended = true
			return nil, ctx.Err()
		}
		if _, err := k.Hold(over, ids, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if idle(t, k); !ended {
			t.Error("the search goes on")
		}
	})
}

// A search whose vault or key service does not return ends all the same, for each who waits by the
// own context, and its key can be had afterwards.
func TestSearchThatHangs(t *testing.T) {
	for _, where := range []string{"vault", "key service"} {
		for name, limit := range map[string]time.Duration{"with a deadline": 10 * time.Second, "without": 0} {
			t.Run(where+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					k, v, s, docs := searchRig(t, 1)
					ids := []bson.UUID{docs[0].ID}
					free := make(chan struct{})
					var hangs atomic.Bool
					hangs.Store(true)
					hang := func() {
						if hangs.Load() {
							<-free
						}
					}
					if where == "vault" {
						v.before = func(context.Context, bson.Raw) ([]bson.Raw, error) { hang(); return nil, nil }
					} else {
						s.odd[string(docs[0].Material)] = func(context.Context) error { hang(); return nil }
					}
					ctx := t.Context()
					if limit > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, limit)
						defer cancel()
					}
					begun := time.Now()
					if _, err := k.Hold(ctx, ids, nil); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					if took := time.Since(begun); limit > 0 && took > limit+time.Second || took > searchLimit+time.Second {
						t.Errorf("it took %v", took)
					}
					hangs.Store(false)
					if h, err := k.Hold(t.Context(), ids, nil); err != nil {
						t.Errorf("afterwards: %v", err)
					} else {
						h.Release()
					}
					close(free)
					time.Sleep(time.Second)
					idle(t, k)
				})
			})
		}
	}
}

// Whatever many goroutines want at the same time, and whoever gives up, each gets what it would get
// alone, and nothing is left behind.
func TestSearchesAreIndependent(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			k, _, s, docs := searchRig(t, 4)
			s.odd[string(docs[2].Material)] = func(context.Context) error { return errOdd }
			s.odd[string(docs[3].Material)] = func(context.Context) error { panic("odd") }
			want := map[string]func(error) bool{
				"key0": nil, "key1": nil, "key2": func(err error) bool { return errors.Is(err, errOdd) },
				"key3":    func(err error) bool { _, ok := errors.AsType[*flight.Panic](err); return ok },
				"missing": func(err error) bool { return errors.Is(err, ErrKeyNotFound) },
			}
			var all sync.WaitGroup
			for range 20 {
				names := slices.Clone([]string{"key0", "key1", "key2", "key3", "missing"})
				random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				names = names[:1+random.IntN(3)]
				wait, patience := time.Duration(random.Int64N(int64(3*time.Second))), time.Duration(random.Int64N(int64(4*time.Second)))
				all.Go(func() {
					time.Sleep(wait)
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					h, err := k.Hold(ctx, nil, names)
					if err == nil {
						defer h.Release()
						for _, n := range names {
							if _, key := h.ByName(n); key == nil || *key.Tokens() == (fle.Tokens{}) {
								t.Errorf("%s is not held, or cleared", n)
							}
						}
					}
					good := err == nil || ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded)
					bad := false
					for _, n := range names {
						if is := want[n]; is != nil {
							bad = true
							good = good || err != nil && is(err)
						}
					}
					if !good || bad && err == nil {
						t.Errorf("%v: %v", names, err)
					}
				})
			}
			all.Wait()
			time.Sleep(2 * time.Second)
			idle(t, k)
			if t.Failed() {
				t.Log(fmt.Sprint("seed ", seed))
			}
		})
	}
}

// lateContext ends some time after its deadline, as a context's timer may.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// The time of a search that has its caller's deadline is up in the vault or in a key service: Hold
// returns when the caller's context has ended, too, by which callers tell whose time was up.
func TestTimeIsUpForBoth(t *testing.T) {
	until := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, set := range map[string]func(v *slowVault, s *oddService, docs []*Document){
		"vault": func(v *slowVault, _ *oddService, _ []*Document) {
			v.before = func(ctx context.Context, _ bson.Raw) ([]bson.Raw, error) { return nil, until(ctx) }
		},
		"key service": func(_ *slowVault, s *oddService, docs []*Document) { s.odd[string(docs[0].Material)] = until },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, v, s, docs := searchRig(t, 1)
				set(v, s, docs)
				inner, cancel := context.WithTimeout(t.Context(), 5*time.Second+time.Millisecond)
				defer cancel()
				ctx := lateContext{inner, time.Now().Add(5 * time.Second)}
				if _, err := k.Hold(ctx, nil, []string{"key0"}); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
					t.Errorf("%v, while the context has %v", err, ctx.Err())
				}
				idle(t, k)
			})
		})
	}
}

// Who is told of keys may panic, or end the goroutine: nothing is held for an operation that ended
// so, and keys that are told of by the timer expire all the same.
func TestObserversMayFail(t *testing.T) {
	for kind, name := range map[KeyEventKind]string{KeysFetched: "fetched", KeysCached: "cached", KeysDropped: "dropped"} {
		for mode, fail := range map[string]func(){"panic": func() { panic("the program's") }, "Goexit": runtime.Goexit} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					k, _, _, docs := searchRig(t, 3)
					var failing atomic.Bool
					var failed atomic.Int32
					k.Observe = func(_ context.Context, e KeyEvent) {
						if failing.Load() && e.Kind == kind {
							failed.Add(1)
							fail()
						}
					}
					hold := func() (err error) {
						return flight.Apart(func() error {
							h, err := k.Hold(t.Context(), []bson.UUID{docs[0].ID, docs[1].ID}, nil)
							if err == nil {
								h.Release()
							}
							return err
						})
					}
					h := must(k.Hold(t.Context(), []bson.UUID{docs[0].ID, docs[2].ID}, nil))
					h.Release()
					failing.Store(true)
					err := hold() // one is kept, one is searched for
					if wrong := kind != KeysDropped; (err != nil) != wrong {
						t.Errorf("the operation ended in %v", err)
					}
					synctest.Wait()
					idle(t, k)
					time.Sleep(2 * time.Minute) // they expire
					synctest.Wait()
					if n := len(k.cached); n != 0 {
						t.Errorf("%d keys are kept", n)
					}
					if failed.Load() == 0 {
						t.Error("nobody was told")
					}
					failing.Store(false)
					if err := hold(); err != nil {
						t.Error(err)
					}
					idle(t, k)
				})
			})
		}
	}
}

// exitingService runs code as it wraps, or as it unwraps.
type exitingService struct {
	*local
	wrap, unwrap func()
}

func (s *exitingService) Wrap(ctx context.Context, key bson.Raw, material []byte) (bson.Raw, []byte, error) {
	s.wrap()
	return s.local.Wrap(ctx, key, material)
}

func (s *exitingService) Unwrap(ctx context.Context, key bson.Raw, wrapped []byte) ([]byte, error) {
	s.unwrap()
	return s.local.Unwrap(ctx, key, wrapped)
}

// What code of the program's does as a key is wrapped or unwrapped is an error: no key is taken for
// one that was, and none would be written over by one that was not.
func TestServicesMayFail(t *testing.T) {
	nothing := func() {}
	for mode, fail := range map[string]func(){"panic": func() { panic("the program's") }, "Goexit": runtime.Goexit} {
		t.Run(mode, func(t *testing.T) {
			_, v, l, docs := rig(t, 3, time.Minute)
			try := func(wrap, unwrap func()) (found, rewrapped error) {
				k := NewKeys(v, &exitingService{local: l, wrap: wrap, unwrap: unwrap}, time.Minute)
				defer k.Close()
				h, found := k.Hold(t.Context(), []bson.UUID{docs[0].ID, docs[1].ID}, nil)
				if found == nil {
					h.Release()
				}
				out, rewrapped := k.Rewrap(t.Context(), v.docs, nil)
				if rewrapped != nil && out != nil {
					t.Errorf("there are keys to write: %v", out)
				}
				return found, rewrapped
			}
			if found, rewrapped := try(nothing, fail); found == nil || rewrapped == nil {
				t.Errorf("unwrapping: keys are found with %v, and rewrapped with %v", found, rewrapped)
			}
			if found, rewrapped := try(fail, nothing); found != nil || rewrapped == nil {
				t.Errorf("wrapping: keys are found with %v, and rewrapped with %v", found, rewrapped)
			}
		})
	}
}
