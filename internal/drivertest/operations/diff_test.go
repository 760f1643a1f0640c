package operations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// randomValue returns a value of documents that differ in few places: the same seeds make the same.
func randomValue(r *rand.Rand, depth int) any {
	n := r.IntN(12)
	if depth == 0 {
		n = r.IntN(7)
	}
	switch n {
	case 0:
		return int32(r.IntN(3))
	case 1:
		return int64(r.IntN(3))
	case 2:
		return float64(r.IntN(3))
	case 3:
		return strconv.Itoa(r.IntN(3))
	case 4:
		return nil
	case 5:
		return r.IntN(2) == 0
	case 6:
		return bson.Binary{Data: []byte{byte(r.IntN(2))}}
	case 7, 8:
		a := bson.A{}
		for range r.IntN(4) {
			a = append(a, randomValue(r, depth-1))
		}
		return a
	}
	return randomDocument(r, depth-1, []string{"a", "b", "c", "x.y", "$d", "0", "1", "10", "", "é"})
}

func randomDocument(r *rand.Rand, depth int, keys []string) bson.D {
	d := bson.D{}
	for _, i := range r.Perm(len(keys))[:r.IntN(len(keys)/2+1)] {
		d = append(d, bson.E{Key: keys[i], Value: randomValue(r, depth)})
	}
	return d
}

// changed returns a value with some things in it changed.
func changed(r *rand.Rand, v any, depth int) any {
	if r.IntN(6) == 0 {
		return randomValue(r, depth)
	}
	switch v := v.(type) {
	case bson.D:
		out := bson.D{}
		for _, e := range v {
			switch r.IntN(8) {
			case 0:
				continue
			case 1, 2:
				e.Value = changed(r, e.Value, depth-1)
			}
			out = append(out, e)
		}
		if r.IntN(3) == 0 {
			key := []string{"a", "n", "m", "x.y", "$d", "5", "40"}[r.IntN(7)]
			if _, there := out.Get(key); !there {
				out = append(out, bson.E{Key: key, Value: randomValue(r, max(depth-1, 0))})
			}
		}
		if r.IntN(6) == 0 {
			slices.Reverse(out)
		}
		return out
	case bson.A:
		out := slices.Clone(v)
		for i := range out {
			if r.IntN(4) == 0 {
				out[i] = changed(r, out[i], max(depth-1, 0))
			}
		}
		switch r.IntN(4) {
		case 0:
			out = append(out, randomValue(r, max(depth-1, 0)))
		case 1:
			out = out[:len(out)/2]
		}
		return out
	}
	return v
}

// canonical returns a document as text, with its keys sorted at the top and, if all is true,
// everywhere.
func canonical(d bson.D, all bool) string {
	d = slices.Clone(d)
	slices.SortFunc(d, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
	var b strings.Builder
	for _, e := range d {
		fmt.Fprintf(&b, "%q: %s\n", e.Key, canonicalValue(e.Value, all))
	}
	return b.String()
}

func canonicalValue(v any, all bool) string {
	switch v := v.(type) {
	case bson.D:
		if all {
			return "{" + canonical(v, all) + "}"
		}
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = fmt.Sprintf("%q: %s", e.Key, canonicalValue(e.Value, all))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case bson.A:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = canonicalValue(e, all)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprintf("%T(%v)", v, v)
}

// TestDiffLeadsThere applies the updates between random documents in a deployment: after is what
// becomes of before, to the order of keys inside.
func TestDiffLeadsThere(t *testing.T) {
	d, err := mongotest.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	c := client.Database("d").Collection("c")
	applied, same, none := 0, 0, 0
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 2))
		keys := []string{"a", "b", "c", "d", "0", "7"}
		if seed%20 == 0 {
			keys = append(keys, "x.y", "$z")
		}
		before := append(bson.D{{Key: "_id", Value: int64(seed)}}, randomDocument(r, 3, keys)...)
		body, ok := changed(r, before[1:], 3).(bson.D)
		if !ok {
			continue
		}
		after := append(bson.D{{Key: "_id", Value: int64(seed)}}, body...)
		o := bson.DiffOptions{ArrayElements: r.IntN(2) == 0, AnyOrder: r.IntN(2) == 0}
		update, err := bson.Diff(before, after, o)
		if errors.Is(err, bson.ErrNoPath) {
			none++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(update) == 0 {
			same++
			if canonical(before, o.AnyOrder) != canonical(after, o.AnyOrder) {
				t.Errorf("seed %d: no difference between\n%s and\n%s", seed, before, after)
			}
			continue
		}
		if _, err := c.InsertOne(ctx, before); err != nil {
			none++ // a dollar sign where servers want none
			continue
		}
		if _, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: int64(seed)}}, update); err != nil {
			t.Errorf("seed %d: %v\nleads from\n%s to\n%s by\n%s", seed, err, before, after, update)
			continue
		}
		got, err := c.FindOne(ctx, bson.D{{Key: "_id", Value: int64(seed)}})
		if err != nil {
			t.Fatal(err)
		}
		applied++
		if canonical(got, o.AnyOrder) != canonical(after, o.AnyOrder) {
			t.Errorf("seed %d: %+v: of\n%s comes\n%s, want\n%s by\n%s", seed, o, before, got, after, update)
		}
	}
	if applied < 1500 || same < 50 || none < 10 {
		t.Errorf("%d updates, %d without a difference, %d without a path: too few to show something", applied, same, none)
	}
}
