package encryption_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/encryption"
	"allium/internal/fle"
)

// TestRangeSizes makes the table of docs/performance-encryption.md that shows how large values and
// queries of a range field become, and wants it to stand there.
func TestRangeSizes(t *testing.T) {
	w := start(t, encryption.Options{})
	id := must(w.keys.CreateDataKey(t.Context(), "local"))
	line := func(d sizedDomain, sparsity int64, trim int32) string { return rangeSize(t, w, &id, d, sparsity, trim) }
	all := sizedDomain{"int, all", int32(-1 << 31), int32(1<<31 - 1), -1}
	var table []string
	for _, d := range []sizedDomain{
		{"int, 0 to 130", int32(0), int32(130), -1},
		{"int, 0 to 65,535", int32(0), int32(65535), -1},
		all,
		{"long, all", int64(-1 << 63), int64(1<<63 - 1), -1},
		{"double, 0 to 1,000, 2 digits", 0.0, 1000.0, 2},
		{"double, all", nil, nil, -1},
		{"decimal, all", nil, nil, -1},
	} {
		for _, sparsity := range []int64{1, 2, 4} {
			table = append(table, line(d, sparsity, 6))
		}
	}
	for _, trim := range []int32{0, 2, 4, 8, 10} {
		table = append(table, line(all, 2, trim))
	}
	page := string(must(os.ReadFile("../docs/performance-encryption.md")))
	if want := strings.Join(table, "\n"); !strings.Contains(page, want) {
		t.Errorf("docs/performance-encryption.md does not have this table:\n%s", want)
	}
}

// sizedDomain is what a range field may hold.
type sizedDomain struct {
	name            string
	least, greatest any
	digits          int32 // after the point; -1: all
}

// rangeSize returns a line of the table: the tags and the bytes of a value, as it is sent and as it
// is stored, and the edges and the bytes of a query for all but the least and the greatest value.
func rangeSize(t *testing.T, w *world, id *bson.UUID, d sizedDomain, sparsity int64, trim int32) string {
	t.Helper()
	r := &encryption.RangeOptions{Min: d.least, Max: d.greatest, Sparsity: &sparsity, TrimFactor: &trim}
	if d.digits >= 0 {
		r.Precision = &d.digits
	}
	value, low, high := d.least, d.least, d.greatest
	if d.least == nil {
		value, low, high = 1.5, -1e300, 1e300
		if strings.HasPrefix(d.name, "decimal") {
			value, low, high = parse128(t, "1.5"), parse128(t, "-1E+6000"), parse128(t, "1E+6000")
		}
	}
	o := encryption.EncryptOptions{Algorithm: encryption.Range, KeyID: id, Contention: new(int64(8)), Range: r}
	insert := must(w.keys.Encrypt(t.Context(), value, o))
	payload, err := fle.ParseInsert(insert.Data)
	if err != nil {
		t.Fatal(err)
	}
	stored, _, err := payload.Store(make([]uint64, len(payload.Sets())), strings.NewReader(strings.Repeat("x", 1<<16)))
	if err != nil {
		t.Fatal(err)
	}
	o.Query = encryption.RangeQuery
	query := must(w.keys.EncryptExpression(t.Context(), bson.D{{Key: "$and", Value: bson.A{
		bson.D{{Key: "f", Value: bson.D{{Key: "$gt", Value: low}}}}, bson.D{{Key: "f", Value: bson.D{{Key: "$lt", Value: high}}}},
	}}}, o))
	edges, size := 0, 0
	if err := fle.Each(query, func(data []byte) error {
		size += len(data)
		p, err := fle.ParseFindRange(slices.Clone(data))
		if err == nil {
			edges += len(p.Edges)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d |", d.name, sparsity, trim, len(payload.Sets()), len(insert.Data), len(stored), edges, size)
}

func parse128(t *testing.T, s string) bson.Decimal128 {
	t.Helper()
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
