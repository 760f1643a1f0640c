package crypt

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/fle"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// local is a Service with one master key.
type local struct {
	master []byte
	random io.Reader
	err    error
	calls  atomic.Int32
	slow   time.Duration
}

func newLocal() *local { return &local{master: make([]byte, 96), random: rand.Reader} }

func (l *local) Wrap(_ context.Context, masterKey bson.Raw, material []byte) (bson.Raw, []byte, error) {
	wrapped, err := fle.WrapKey(l.master, material, l.random)
	return masterKey, wrapped, errors.Join(err, l.err)
}

func (l *local) Unwrap(ctx context.Context, _ bson.Raw, wrapped []byte) ([]byte, error) {
	l.calls.Add(1)
	if l.slow > 0 {
		select {
		case <-time.After(l.slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if l.err != nil {
		return nil, l.err
	}
	return fle.UnwrapKey(l.master, wrapped)
}

// vault is a Vault in memory.
type vault struct {
	mu      sync.Mutex
	docs    []bson.Raw
	queries []bson.Raw
	err     error
}

func (v *vault) Keys(_ context.Context, filter bson.Raw) ([]bson.Raw, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queries = append(v.queries, filter)
	if v.err != nil {
		return nil, v.err
	}
	var out []bson.Raw
	for _, doc := range v.docs {
		in := func(field string, v bson.RawValue) bool {
			found := false
			for _, path := range []string{"0", "1"} {
				list, _ := filter.Lookup("$or", path, field, "$in").Array()
				for w := range list.Values() {
					found = found || w.Equal(v)
				}
			}
			return found
		}
		match := in("_id", doc.Lookup("_id"))
		alts, _ := doc.Lookup("keyAltNames").Array()
		for alt := range alts.Values() {
			match = match || in("keyAltNames", alt)
		}
		if match {
			out = append(out, doc)
		}
	}
	return out, nil
}

func (v *vault) asked() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.queries)
}

var localKey = bson.Raw(must(bson.Marshal(bson.D{{Key: "provider", Value: "local"}})))

// rig has a vault with n keys called key0, key1, ...
func rig(t testing.TB, n int, life time.Duration) (*Keys, *vault, *local, []*Document) {
	v, l := &vault{}, newLocal()
	k := NewKeys(v, l, life)
	t.Cleanup(k.Close)
	var docs []*Document
	for i := range n {
		d, err := k.NewDocument(t.Context(), localKey, []string{fmt.Sprint("key", i)}, nil, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		v.docs = append(v.docs, d.Append(nil))
		docs = append(docs, d)
	}
	return k, v, l, docs
}

func TestHold(t *testing.T) {
	k, v, _, docs := rig(t, 3, time.Minute)
	h, err := k.Hold(t.Context(), []bson.UUID{docs[0].ID, docs[1].ID, docs[0].ID}, []string{"key2", "key1"})
	if err != nil {
		t.Fatal(err)
	}
	id, byName := h.ByName("key1")
	if v.asked() != 1 || byName == nil || byName != h.Key(docs[1].ID) || id != docs[1].ID || h.Key(docs[0].ID) == nil || h.Key(docs[2].ID) != nil {
		t.Errorf("%d queries; %v", v.asked(), h.held)
	}
	h.Release()
	if h, err = k.Hold(t.Context(), []bson.UUID{docs[2].ID}, []string{"key0"}); err != nil || v.asked() != 1 {
		t.Errorf("%d queries, %v", v.asked(), err)
	}
	h.Release()
	_, err = k.Hold(t.Context(), []bson.UUID{{1}}, nil)
	if !errors.Is(err, ErrKeyNotFound) || !strings.Contains(err.Error(), "01000000-0000") {
		t.Error(err)
	}
	_, err = k.Hold(t.Context(), nil, []string{"other"})
	if !errors.Is(err, ErrKeyNotFound) || !strings.Contains(err.Error(), `"other"`) {
		t.Error(err)
	}
}

func TestHoldErrors(t *testing.T) {
	k, v, l, docs := rig(t, 2, time.Minute)
	broken := errors.New("broken")
	v.err = broken
	if _, err := k.Hold(t.Context(), []bson.UUID{docs[0].ID}, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
	v.err, l.err = nil, broken
	if _, err := k.Hold(t.Context(), []bson.UUID{docs[0].ID, docs[1].ID}, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
	l.err = nil
	l.master = bytes.Repeat([]byte{1}, 96)
	if _, err := k.Hold(t.Context(), []bson.UUID{docs[0].ID}, nil); !errors.Is(err, fle.ErrTag) {
		t.Error(err)
	}
	v.docs[0] = must(bson.Marshal(bson.D{{Key: "_id", Value: docs[0].ID}}))
	if _, err := k.Hold(t.Context(), []bson.UUID{docs[0].ID}, nil); !errors.Is(err, errKeyDocument) {
		t.Error(err)
	}
}

// TestExpiry is about keys that have been kept long enough: they are looked up again, and their
// material is gone, but not from under those who use it.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, v, _, docs := rig(t, 1, time.Minute)
		ids := []bson.UUID{docs[0].ID}
		h := must(k.Hold(t.Context(), ids, nil))
		old := h.Key(ids[0])
		before := *old.Tokens()
		time.Sleep(59 * time.Second)
		must(k.Hold(t.Context(), ids, nil)).Release()
		if v.asked() != 1 {
			t.Errorf("%d queries", v.asked())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if *old.Tokens() != before {
			t.Error("cleared while in use")
		}
		h2 := must(k.Hold(t.Context(), ids, nil))
		if v.asked() != 2 || h2.Key(ids[0]) == old {
			t.Errorf("%d queries", v.asked())
		}
		h.Release()
		if *old.Tokens() != (fle.Tokens{}) {
			t.Error("not cleared")
		}
		h2.Release()
		time.Sleep(2 * time.Minute) // nobody asks: the sweep clears it
		synctest.Wait()
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.cached) != 0 || k.timer != nil {
			t.Errorf("%d keys are kept", len(k.cached))
		}
	})
}

func TestNoExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, v, _, docs := rig(t, 1, 0)
		for range 3 {
			must(k.Hold(t.Context(), []bson.UUID{docs[0].ID}, nil)).Release()
			time.Sleep(1000 * time.Hour)
		}
		if v.asked() != 1 {
			t.Errorf("%d queries", v.asked())
		}
		h := must(k.Hold(t.Context(), []bson.UUID{docs[0].ID}, nil))
		key := h.Key(docs[0].ID)
		if *key.Tokens() == (fle.Tokens{}) {
			t.Error("no tokens")
		}
		h.Release()
		k.Close()
		if *key.Tokens() != (fle.Tokens{}) {
			t.Error("Close clears nothing")
		}
		if h, err := k.Hold(t.Context(), []bson.UUID{docs[0].ID}, nil); err != nil || h.Key(docs[0].ID) == nil {
			t.Error(err)
		} else {
			h.Release()
		}
		if len(k.cached) != 0 {
			t.Error("keys are kept after Close")
		}
	})
}

// TestOneFlight is about many goroutines that want the same keys.
func TestOneFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, v, l, docs := rig(t, 2, time.Minute)
		l.slow = time.Second
		for i := range 100 {
			go func() {
				ids := []bson.UUID{docs[i%2].ID, docs[1].ID}
				h, err := k.Hold(t.Context(), ids, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if h.Key(ids[0]) == nil || h.Key(ids[1]) == nil {
					t.Error("not held")
				}
				h.Release()
			}()
		}
		time.Sleep(time.Minute / 2)
		synctest.Wait()
		if n := v.asked(); n > 2 || l.calls.Load() != 2 {
			t.Errorf("%d queries, %d keys unwrapped", n, l.calls.Load())
		}
		for n, c := range k.cached {
			if c.users != 0 {
				t.Errorf("%s is in use by %d", n, c.users)
			}
		}
	})
}

// TestFlightOfAnother is about the one who looks for a key and gives up: those who wait look for
// themselves.
func TestFlightOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, v, l, docs := rig(t, 1, time.Minute)
		l.slow = time.Second
		ids := []bson.UUID{docs[0].ID}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		go func() {
			if _, err := k.Hold(ctx, ids, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		short, cancel2 := context.WithTimeout(t.Context(), time.Second/4)
		defer cancel2()
		if _, err := k.Hold(short, ids, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		must(k.Hold(t.Context(), ids, nil)).Release()
		if v.asked() != 2 {
			t.Errorf("%d queries", v.asked())
		}
		l.err = errors.New("broken")
		k2 := NewKeys(v, l, time.Minute)
		for range 10 {
			go func() {
				if _, err := k2.Hold(t.Context(), ids, nil); !errors.Is(err, l.err) {
					t.Error(err)
				}
			}()
		}
		time.Sleep(time.Minute)
	})
}

// canned is a Vault that answers the same whatever it is asked.
type canned []bson.Raw

func (c canned) Keys(context.Context, bson.Raw) ([]bson.Raw, error) { return c, nil }

// TestCacheVectors is about which keys are kept when key documents change.
func TestCacheVectors(t *testing.T) {
	type key struct {
		ID       *int     `json:"_id"`
		AltNames []string `json:"keyAltNames"`
		AltName  string   `json:"keyAltName"`
	}
	var cases []struct {
		Description               string
		Cached, Requests, Replies []key
		Expect                    struct {
			Cached []key
			Error  string `json:"errmsg"`
		}
	}
	if err := json.Unmarshal(must(os.ReadFile("testdata/cache-tests.json")), &cases); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range cases {
		t.Run(c.Description, func(t *testing.T) {
			n++
			l := newLocal()
			wrapped := must(fle.WrapKey(l.master, make([]byte, 96), rand.Reader))
			id := func(n int) bson.UUID { return bson.UUID{15: byte(n + 1)} }
			document := func(e key) *Document {
				return &Document{ID: id(*e.ID), AltNames: e.AltNames, Material: wrapped, MasterKey: localKey}
			}
			var replies canned
			for _, e := range c.Replies {
				replies = append(replies, document(e).Append(nil))
			}
			k := NewKeys(replies, l, 0)
			defer k.Close()
			for _, e := range c.Cached {
				k.put(document(e), must(fle.NewKey(make([]byte, 96))))
			}
			var ids []bson.UUID
			var names []string
			for _, e := range c.Requests {
				if e.ID != nil {
					ids = append(ids, id(*e.ID))
				} else {
					names = append(names, e.AltName)
				}
			}
			h, err := k.Hold(t.Context(), ids, names)
			if c.Expect.Error != "" {
				if err == nil || !strings.Contains(err.Error(), c.Expect.Error) {
					t.Errorf("error %v, want %q", err, c.Expect.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			h.Release()
			got := make(map[string]bool)
			for _, e := range k.cached {
				got[fmt.Sprint(e.id[15]-1, slices.Sorted(slices.Values(e.altNames)))] = true
			}
			want := make(map[string]bool)
			for _, e := range c.Expect.Cached {
				want[fmt.Sprint(*e.ID, slices.Sorted(slices.Values(e.AltNames)))] = true
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
	if n != 17 {
		t.Errorf("%d vectors", n)
	}
}

// Keys that were fetched one after the other are dropped so, each when its own time is over.
func TestExpiryInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _, _, docs := rig(t, 4, time.Minute)
		for _, d := range docs {
			must(k.Hold(t.Context(), []bson.UUID{d.ID}, nil)).Release()
			time.Sleep(10 * time.Second)
		}
		time.Sleep(20 * time.Second) // a minute since the first one
		for left := len(docs) - 1; left >= 0; left-- {
			synctest.Wait()
			k.mu.Lock()
			n := map[*cached]bool{}
			for _, c := range k.cached {
				n[c] = true
			}
			k.mu.Unlock()
			if len(n) != left {
				t.Errorf("%d keys are kept, want %d", len(n), left)
			}
			time.Sleep(10 * time.Second)
		}
	})
}
