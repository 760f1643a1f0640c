package command

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/wire"
)

// testWrites are inserts of documents of given sizes into given namespaces.
type testWrites []struct {
	ns    string
	size  int // of the filler
	multi bool
}

func (w testWrites) Len() int { return len(w) }

func (w testWrites) Write(i int) BulkStatement {
	s := BulkStatement{Namespace: w[i].ns}
	if w[i].multi {
		s.Delete = &DeleteStatement{Filter: bson.D{}, Multi: true}
	}
	return s
}

func (w testWrites) AppendDocument(dst []byte, i int) ([]byte, error) {
	return bson.MarshalAppend(dst, bson.D{{Key: "_id", Value: int32(i)}, {Key: "f", Value: strings.Repeat("f", w[i].size)}})
}

// built is one message, taken apart.
type built struct {
	body bson.Raw
	ops  []bson.Raw
	ns   []string
}

func buildBulk(t *testing.T, c *BulkWrite, target *Target) (built, error) {
	return buildFitted(t, c, target, nil)
}

// buildFitted builds a message for what is assumed of the server, and fits it to the limits that it
// turns out to have, unless they are nil.
func buildFitted(t *testing.T, c *BulkWrite, assumed, limits *Target) (built, error) {
	t.Helper()
	var b built
	start, dst := bson.BeginDocument(wire.AppendMsg(nil, 1, 0, 0))
	dst, err := c.AppendBody(dst, assumed)
	var sequences []byte
	if err == nil {
		dst = bson.EndDocument(dst, start)
		sequences, err = c.AppendSequences(nil, assumed)
	}
	if err == nil && limits != nil {
		sequences, err = c.Fit(sequences, len(dst), limits)
	}
	if err != nil {
		return b, err
	}
	dst = append(dst, sequences...)
	m, err := wire.ParseMsg(wire.FinishMessage(dst, 0))
	if err != nil {
		t.Fatal(err)
	}
	b.body = m.Body
	for _, s := range m.Sequences {
		for docs := s.Docs; len(docs) > 0; {
			doc, rest, err := bson.ReadDocument(docs)
			if err != nil {
				t.Fatal(err)
			}
			docs = rest
			if s.ID == "ops" {
				b.ops = append(b.ops, doc)
				continue
			}
			ns, _ := doc.Lookup("ns").StringValue()
			b.ns = append(b.ns, strings.Clone(ns))
		}
	}
	return b, nil
}

// size is what the specification limits: the command document, ops and nsInfo.
func (b *built) size() int {
	n := len(b.body)
	for _, op := range b.ops {
		n += len(op)
	}
	for _, ns := range b.ns {
		n += sizeOfNS(ns)
	}
	return n
}

func sizeOfNS(ns string) int {
	doc, _ := bson.Marshal(bson.D{{Key: "ns", Value: ns}})
	return len(doc)
}

// TestBulkWriteSplitting checks with random writes that every message keeps to the limits, that the
// next write would not have fitted, that namespaces are listed once and only where they are used,
// and that all writes come in their order.
func TestBulkWriteSplitting(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		target := target()
		target.MaxMessageSize, target.MaxBatchCount = bulkMessageOverhead+400+r.IntN(3000), 1+r.IntN(12)
		writes := make(testWrites, 1+r.IntN(60))
		for i := range writes {
			writes[i].ns = "db." + strings.Repeat("c", 1+r.IntN(4)*r.IntN(4))
			writes[i].size = r.IntN(100)
			writes[i].multi = r.IntN(5) == 0
		}
		c := &BulkWrite{Writes: writes, Ordered: true, ErrorsOnly: true, Comment: strings.Repeat("x", r.IntN(20))}
		limit := target.MaxMessageSize - bulkMessageOverhead
		next := 0
		for c.Left() > 0 {
			b, err := buildBulk(t, c, target)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if c.First() != next || c.Count() != len(b.ops) || len(b.ops) == 0 || len(b.ops) > target.MaxBatchCount || b.size() > limit {
				t.Fatalf("seed %d: message at %d holds %d of %d writes in %d of %d bytes", seed, c.First(), len(b.ops), target.MaxBatchCount, b.size(), limit)
			}
			used := map[string]bool{}
			multi := false
			for i, op := range b.ops {
				w := writes[next+i]
				name := "insert"
				if w.multi {
					name, multi = "delete", true
				} else if id, _ := op.Lookup("document", "_id").AsInt64(); id != int64(next+i) {
					t.Fatalf("seed %d: write %d is %v", seed, next+i, op)
				}
				at, ok := op.Lookup(name).AsInt64()
				if !ok || int(at) >= len(b.ns) || b.ns[at] != w.ns {
					t.Fatalf("seed %d: write %d, for %s, is %v with %v", seed, next+i, w.ns, op, b.ns)
				}
				used[w.ns] = true
			}
			if len(used) != len(b.ns) {
				t.Fatalf("seed %d: %d namespaces are listed, %d are used", seed, len(b.ns), len(used))
			}
			if c.Retryable(len(b.ops)) == multi {
				t.Fatalf("seed %d: retryable is %v", seed, !multi)
			}
			next += len(b.ops)
			if next < len(writes) && len(b.ops) < target.MaxBatchCount {
				single := &BulkWrite{Writes: writes[next : next+1], Ordered: true, ErrorsOnly: true}
				one, err := buildBulk(t, single, target)
				if err != nil {
					t.Fatal(err)
				}
				more := len(one.ops[0])
				if !used[writes[next].ns] {
					more += sizeOfNS(writes[next].ns)
				}
				if b.size()+more <= limit {
					t.Fatalf("seed %d: write %d would have fitted: %d + %d of %d bytes", seed, next, b.size(), more, limit)
				}
			}
			c.Advance()
		}
		if next != len(writes) {
			t.Fatalf("seed %d: %d of %d writes", seed, next, len(writes))
		}
	}
}

func TestBulkWriteAgain(t *testing.T) {
	writes := testWrites{{ns: "a.b", size: 10}, {ns: "a.c", size: 10}}
	c := &BulkWrite{Writes: writes}
	first, err := buildBulk(t, c, target())
	if err != nil {
		t.Fatal(err)
	}
	second, err := buildBulk(t, c, target())
	if err != nil || fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("an attempt that is repeated sends %v after %v, %v", second, first, err)
	}
}

// What was built for greater limits than the server has is cut to what would have been built for
// the server.
func TestBulkWriteFits(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		limits := target()
		limits.MaxMessageSize, limits.MaxBatchCount = bulkMessageOverhead+400+r.IntN(3000), 1+r.IntN(12)
		writes := make(testWrites, 1+r.IntN(60))
		for i := range writes {
			writes[i].ns = "db." + strings.Repeat("c", 1+r.IntN(4)*r.IntN(4))
			writes[i].size = r.IntN(100)
			writes[i].multi = r.IntN(5) == 0
		}
		own, cut := &BulkWrite{Writes: writes}, &BulkWrite{Writes: writes}
		for own.Left() > 0 {
			want, err := buildBulk(t, own, limits)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got, err := buildFitted(t, cut, target(), limits)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || own.Count() != cut.Count() {
				t.Fatalf("seed %d, from write %d: %d writes, %v; want %d\n%v\n%v", seed, own.First(), cut.Count(), err, own.Count(), got, want)
			}
			own.Advance()
			cut.Advance()
		}
		if cut.Left() > 0 {
			t.Fatalf("seed %d: %d writes are left", seed, cut.Left())
		}
	}
}

// A document that is too large for the server is found whether its limit is known early or late.
func TestBulkWriteChecksSizes(t *testing.T) {
	limits := target()
	limits.MaxDocumentSize = 100
	unknown := target()
	unknown.MaxDocumentSize = 0
	for name, assumed := range map[string]*Target{"early": limits, "late": unknown} {
		c := &BulkWrite{Writes: testWrites{{ns: "a.b", size: 10}, {ns: "a.b", size: 200}}, CheckSize: true}
		if _, err := buildFitted(t, c, assumed, limits); err == nil || !strings.Contains(err.Error(), "write 1: document has ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A write that fits into no message is the error of that write, by its place in all of them, also
// if it would be the first of a later message.
func TestBulkWriteTooLargeIsNamed(t *testing.T) {
	for large := range 4 {
		c := &BulkWrite{Writes: make(testWrites, 4)}
		writes := c.Writes.(testWrites)
		for i := range writes {
			writes[i].ns, writes[i].size = "a.b", 10
		}
		writes[large].size = 5000
		sent := 0
		for c.Left() > 0 {
			to := target()
			to.MaxMessageSize = bulkMessageOverhead + 1000
			if _, err := c.AppendBody(nil, to); err != nil {
				t.Fatal(err)
			}
			_, err := c.AppendSequences(nil, to)
			if err != nil {
				if want := fmt.Sprintf("write %d and its namespace have ", large); !strings.HasPrefix(err.Error(), want) || sent != large {
					t.Errorf("write %d is too large, %d were sent before: %v", large, sent, err)
				}
				break
			}
			if sent += c.Count(); sent > large {
				t.Fatalf("write %d is too large, and %d were sent", large, sent)
			}
			c.Advance()
		}
	}
}
