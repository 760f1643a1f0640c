package series

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// noChecks takes every document as it is.
type noChecks struct{}

func (noChecks) Prepare(doc bson.Raw) (bson.Raw, error) { return bsondoc.Copy(doc), nil }

func (noChecks) Validate(*store.Coll, bson.Raw, bson.Raw, bool) error { return nil }

// empty returns a store with a time series collection.
func empty(t *testing.T, spec bson.Raw) *store.Store {
	t.Helper()
	s := store.New(store.Options{})
	raw := bsondoc.Single("timeseries", bsondoc.DocumentValue(Complete(spec)))
	if err := s.Write(func(tx *store.Tx) error {
		_, err := tx.Create("db.c", store.Settings{Raw: raw, TimeSeries: true}, nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// text returns a document as text, its fields in the order of their names: those of a bucket's
// measurements come in one order.
func text(doc bson.Raw) string {
	var list []string
	for k, v := range doc.All() {
		list = append(list, fmt.Sprint(k, ": ", v))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// contents returns the documents of a collection as texts in ascending order.
func contents(c *store.Coll) (list []string) {
	for scan := store.NewScan(c, false, nil); ; {
		_, doc, ok := scan.Next()
		if !ok {
			slices.Sort(list)
			return list
		}
		list = append(list, text(doc))
	}
}

// random returns a measurement within a day, of one of three series, whose fields have values of
// several types or are missing.
func random(rnd *rand.Rand, i int) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendInt32(d.B, "_id", int32(i))
		d.B = bson.AppendDateTime(d.B, "t", bson.DateTime(1600000000000+rnd.Int64N(86400000)))
		if m := rnd.IntN(4); m > 0 {
			d.B = bson.AppendInt32(d.B, "m", int32(m))
		}
		for _, field := range []string{"a", "b"} {
			switch rnd.IntN(12) {
			case 0:
			case 1:
				d.Str(field, strings.Repeat("x", rnd.IntN(3)))
			case 2:
				d.Doc(field, bsondoc.Single("s", bsondoc.Int32Value(rnd.Int32N(10))))
			default:
				d.B = bson.AppendDouble(d.B, field, float64(rnd.IntN(100)))
			}
		}
	})
}

// Whoever copies the buckets of a collection into another copies its measurements, at each version;
// the buckets are shown there as they were written, can be updated, and are gone once deleted.
func TestBucketsHoldTheMeasurements(t *testing.T) {
	spec := bsondoc.Build(func(d *bsondoc.Builder) { d.Str("timeField", "t"); d.Str("metaField", "m") })
	for _, v := range []release.Version{release.At(5, 0, 0), release.At(6, 0, 0), release.At(7, 0, 0), release.At(8, 0, 0)} {
		for seed := range uint64(5) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			from, to := empty(t, spec), empty(t, spec)
			write := func(s *store.Store, f func(tx *store.Tx, c *store.Coll) error) *store.Coll {
				t.Helper()
				if err := s.Write(func(tx *store.Tx) error { return f(tx, tx.Coll("db.c")) }); err != nil {
					t.Fatalf("%v, seed %d: %v", v, seed, err)
				}
				return s.Latest().Coll("db.c")
			}
			source := write(from, func(tx *store.Tx, c *store.Coll) error {
				for i := range 200 {
					doc, err := Measurement(c, random(rnd, i))
					if err == nil {
						c, err = tx.Insert(c, doc)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			buckets := Of(source, "db.system.buckets.c", v, nil).Coll()
			copied := write(to, func(tx *store.Tx, c *store.Coll) error {
				x := Of(c, "db.system.buckets.c", v, nil)
				for scan := store.NewScan(buckets, false, nil); ; {
					_, doc, ok := scan.Next()
					if !ok {
						return nil
					}
					if err := x.Insert(tx, doc, noChecks{}, false); err != nil {
						return err
					}
					if err := x.Insert(tx, doc, noChecks{}, false); srverr.CodeOf(err) != srverr.DuplicateKey {
						return fmt.Errorf("a second bucket of one _id: %w", err)
					}
				}
			})
			if got, want := contents(copied), contents(source); !slices.Equal(got, want) {
				t.Fatalf("%v, seed %d: the measurements are\n%v, want\n%v", v, seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			shown := Of(copied, buckets.NS, v, nil).Coll()
			if got, want := contents(shown), contents(buckets); !slices.Equal(got, want) {
				t.Fatalf("%v, seed %d: the buckets are\n%v, want\n%v", v, seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			want := contents(source)
			left := write(to, func(tx *store.Tx, c *store.Coll) error {
				x := Of(c, buckets.NS, v, nil)
				for scan := store.NewScan(x.Coll(), false, nil); ; {
					_, doc, ok := scan.Next()
					if !ok {
						return nil
					}
					err := x.Update(tx, doc, noChecks{}, false)
					if err == nil && rnd.IntN(2) == 0 {
						for _, row := range x.of(doc).rows {
							i, _ := slices.BinarySearch(want, text(row.doc))
							want = slices.Delete(want, i, i+1)
						}
						err = x.Delete(tx, doc)
					}
					if err != nil {
						return err
					}
				}
			})
			if got := contents(left); !slices.Equal(got, want) {
				t.Fatalf("%v, seed %d: left are\n%v, want\n%v", v, seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}
