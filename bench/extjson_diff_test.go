package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	official "go.mongodb.org/mongo-driver/v2/bson"

	"allium/bson"
)

// extJSONDocuments makes random documents with every type of BSON. It leaves out where the official
// driver is known to stray from the specifications: it does not escape the namespace of a
// DBPointer, writes an empty binary of subtype 2 with its inner length, prints decimals whose
// coefficient is not canonical (and so a zero), and trims the zeros of milliseconds in dates, which
// trimmedDates puts back.
type extJSONDocuments struct{ *rand.Rand }

func (r extJSONDocuments) text(without string) string {
	letters := []rune("abc \"\\/\n\t\x00\x01éß☆😀<>&\u2028$.")
	var b strings.Builder
	for range r.IntN(12) {
		if c := letters[r.IntN(len(letters))]; !strings.ContainsRune(without, c) {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func (r extJSONDocuments) double() float64 {
	switch r.IntN(6) {
	case 0:
		return math.Inf(1 - 2*r.IntN(2))
	case 1:
		return math.NaN()
	case 2:
		return float64(r.IntN(1000) - 500)
	case 3:
		return float64(r.Int64())
	case 4:
		return r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20))
	}
	if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) {
		return f
	}
	return 0
}

func (r extJSONDocuments) decimal() bson.Decimal128 {
	for {
		if d := bson.NewDecimal128(r.Uint64()>>r.IntN(64), r.Uint64()); d.Sign() != 0 {
			return d
		}
	}
}

func (r extJSONDocuments) document(depth int) bson.Raw {
	start, b := bson.BeginDocument(nil)
	for range r.IntN(5) {
		b = r.appendElement(b, r.text("\x00$"), depth)
	}
	return bson.EndDocument(b, start)
}

func (r extJSONDocuments) appendElement(b []byte, key string, depth int) []byte {
	kinds := 20
	if depth > 4 {
		kinds = 17
	}
	switch r.IntN(kinds) {
	case 0:
		return bson.AppendDouble(b, key, r.double())
	case 1:
		return bson.AppendString(b, key, r.text(""))
	case 2:
		data := []byte(r.text("") + "x")
		return bson.AppendBinary(b, key, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x80, 0xFF}[r.IntN(12)], data)
	case 3:
		return bson.AppendObjectID(b, key, bson.NewObjectID())
	case 4:
		return bson.AppendBool(b, key, r.IntN(2) == 0)
	case 5:
		return bson.AppendDateTime(b, key, bson.DateTime(r.Int64N(4e14)-1e14))
	case 6:
		return bson.AppendNull(b, key)
	case 7:
		return bson.AppendRegex(b, key, bson.Regex{Pattern: r.text("\x00"), Options: []string{"", "i", "imx"}[r.IntN(3)]})
	case 8:
		return append(bson.AppendStringValue(bson.AppendHeader(b, bson.TypeDBPointer, key), "db.coll"), make([]byte, 12)...)
	case 9:
		return bson.AppendStringValue(bson.AppendHeader(b, bson.TypeJavaScript, key), r.text(""))
	case 10:
		return bson.AppendStringValue(bson.AppendHeader(b, bson.TypeSymbol, key), r.text(""))
	case 11:
		return bson.AppendInt32(b, key, int32(r.Uint32()))
	case 12:
		return bson.AppendTimestamp(b, key, bson.Timestamp{T: r.Uint32(), I: r.Uint32()})
	case 13:
		return bson.AppendInt64(b, key, r.Int64()>>r.IntN(64))
	case 14:
		return bson.AppendDecimal128(b, key, r.decimal())
	case 15:
		return bson.AppendHeader(b, []bson.Type{bson.TypeMinKey, bson.TypeMaxKey}[r.IntN(2)], key)
	case 16:
		return bson.AppendHeader(b, bson.TypeUndefined, key)
	case 17:
		code := bson.AppendStringValue(make([]byte, 4), r.text(""))
		code = append(code, r.document(depth+1)...)
		bson.AppendInt32Value(code[:0], int32(len(code)))
		return append(bson.AppendHeader(b, bson.TypeCodeWithScope, key), code...)
	case 18:
		return bson.AppendDocument(b, key, r.document(depth+1))
	default:
		start, b := bson.BeginArrayElement(b, key)
		for i := range r.IntN(5) {
			b = r.appendElement(b, strconv.Itoa(i), depth+1)
		}
		return bson.EndDocument(b, start)
	}
}

var trimmedDates = regexp.MustCompile(`\.\d{1,2}Z"`)

// normalExtJSON writes the tokens of a text in one way: strings, numbers and dates can be written
// in several.
func normalExtJSON(text []byte) string {
	text = trimmedDates.ReplaceAllFunc(text, func(date []byte) []byte {
		return fmt.Appendf(nil, `.%s%sZ"`, date[1:len(date)-2], "00"[len(date)-4:])
	})
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out []string
	double := func(s string) string {
		f, _ := strconv.ParseFloat(s, 64)
		return "double " + strconv.FormatFloat(f, 'g', -1, 64)
	}
	for {
		token, err := d.Token()
		if err != nil {
			return strings.Join(append(out, err.Error()), " ") // io.EOF, if the text is whole
		}
		switch v := token.(type) {
		case json.Number:
			if s := v.String(); strings.ContainsAny(s, ".eE") {
				out = append(out, double(s))
				continue
			}
		case string:
			if len(out) > 0 && out[len(out)-1] == `$numberDouble` {
				out = append(out, double(v))
				continue
			}
		}
		out = append(out, fmt.Sprint(token))
	}
}

// TestExtJSONAgrees: both drivers write the same Extended JSON, and read the other one's into the
// same bytes.
func TestExtJSONAgrees(t *testing.T) {
	r := extJSONDocuments{rand.New(rand.NewPCG(7, 8))}
	for range 5000 {
		doc := r.document(0)
		for _, canonical := range []bool{true, false} {
			ours, err := bson.MarshalExtJSON(doc, canonical)
			if err != nil {
				t.Fatal(err)
			}
			var d official.D
			if err := official.Unmarshal(doc, &d); err != nil {
				t.Fatal(err)
			}
			theirs, err := official.MarshalExtJSON(d, canonical, false)
			if err != nil {
				t.Fatalf("%s: the official driver says %v", ours, err)
			}
			if a, b := normalExtJSON(ours), normalExtJSON(theirs); a != b {
				t.Fatalf("Allium:   %s\nofficial: %s", a, b)
			}
			var fromTheirs bson.Raw
			if err := bson.UnmarshalExtJSON(theirs, &fromTheirs); err != nil {
				t.Fatalf("%s: %v", theirs, err)
			}
			var fromOurs official.Raw
			if err := official.UnmarshalExtJSON(ours, canonical, &fromOurs); err != nil {
				t.Fatalf("%s: the official driver says %v", ours, err)
			}
			if !bytes.Equal(fromOurs, fromTheirs) {
				t.Fatalf("%s\nAllium:   %x\nofficial: %x", ours, fromTheirs, fromOurs)
			}
		}
	}
}

// TestDecimalsAgree: both drivers parse the same texts into the same bits, and print the same bits
// as the same text.
func TestDecimalsAgree(t *testing.T) {
	r := extJSONDocuments{rand.New(rand.NewPCG(9, 10))}
	const letters = "0123456789..eE+-InfNa "
	for range 50000 {
		var s strings.Builder
		if r.IntN(2) == 0 {
			s.WriteString(strings.Repeat("9", r.IntN(36)))
		}
		for range 1 + r.IntN(8) {
			s.WriteByte(letters[r.IntN(len(letters))])
		}
		if r.IntN(3) == 0 {
			fmt.Fprintf(&s, "E%d", r.IntN(13000)-6500)
		}
		ours, err := bson.ParseDecimal128(s.String())
		theirs, officialErr := official.ParseDecimal128(s.String())
		hi, lo := ours.Bits()
		if officialHi, officialLo := theirs.GetBytes(); (err == nil) != (officialErr == nil) || err == nil && (hi != officialHi || lo != officialLo) {
			t.Fatalf("%q: got %s, %v, the official driver %s, %v", s.String(), ours, err, theirs, officialErr)
		}
		d := r.decimal()
		hi, lo = d.Bits()
		if theirs := official.NewDecimal128(hi, lo); d.String() != theirs.String() {
			t.Fatalf("%x %x: got %s, the official driver %s", hi, lo, d, theirs)
		}
	}
}
