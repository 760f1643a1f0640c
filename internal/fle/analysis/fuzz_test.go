package analysis

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"allium/bson"
)

// FuzzAnalyze takes any bytes as a command, and as the schemas of its collections: there is never a
// panic, what comes out is valid BSON, and a command that is accepted holds no placeholder that is
// not marked.
func FuzzAnalyze(f *testing.F) {
	schema, fields := parse(f, csfle), parse(f, queryable)
	for _, tt := range encrypted {
		f.Add([]byte(parse(f, tt.command)), []byte(schema), []byte(fields))
	}
	f.Fuzz(func(t *testing.T, cmd, schema, fields []byte) {
		c, err := ParseJSONSchema("db.c", schema, len(cmd)%2 == 0)
		if err != nil {
			c = jsonSchema(t, "db.c", parse(t, csfle), true)
		}
		q, err := ParseEncryptedFields("db.q", fields)
		if err != nil {
			q = encryptedFields(t, "db.q", parse(t, queryable))
		}
		namespaces, err := Namespaces("db", cmd)
		if err != nil {
			return
		}
		schemas := map[string]*Schema{}
		for i, ns := range namespaces {
			switch {
			case ns == "db.q":
				schemas[ns] = q
			case ns == "db.c" || i == 0:
				schemas[ns] = c
			default:
				schemas[ns] = nil
			}
		}
		got, err := Analyze("db", bson.Raw(cmd), schemas)
		if err != nil {
			return
		}
		if !got.Encrypts {
			return
		}
		if err := got.Command.Validate(); err != nil {
			t.Fatal(err)
		}
		if _, n := withoutPlaceholders(got.Command); n != len(got.Marks) {
			t.Errorf("%d placeholders, %d marks", n, len(got.Marks))
		}
	})
}

// FuzzSafety is TestSafety with the grammar's choices made by the fuzzer, which looks for those
// that lead to new places of the analysis.
func FuzzSafety(f *testing.F) {
	for seed := range uint64(40) {
		r := rand.NewPCG(seed, 11)
		var b []byte
		for range 60 {
			b = binary.LittleEndian.AppendUint64(b, r.Uint64())
		}
		f.Add(b)
	}
	keys := safetyKeys(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		g := newGenerator(1)
		g.Rand = rand.New(&tape{choices, rand.NewPCG(uint64(len(choices)), 12)})
		g.keys = keys
		if _, err := g.check(); err != nil {
			t.Error(err)
		}
	})
}

// tape makes random numbers of bytes, and of another source once they are used up.
type tape struct {
	b    []byte
	rest rand.Source
}

func (s *tape) Uint64() uint64 {
	if len(s.b) < 8 {
		return s.rest.Uint64()
	}
	n := binary.LittleEndian.Uint64(s.b)
	s.b = s.b[8:]
	return n
}
