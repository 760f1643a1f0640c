package bson_test

// The BSON corpus (specification: BSON Corpus), each case in every form that its text lists.

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"allium/bson"
	"allium/internal/spectest"
)

type corpusFile struct {
	Description string `json:"description"`
	BSONType    string `json:"bson_type"`
	TestKey     string `json:"test_key"`
	Deprecated  bool   `json:"deprecated"`
	Valid       []struct {
		Description       string  `json:"description"`
		CanonicalBSON     string  `json:"canonical_bson"`
		CanonicalExtJSON  string  `json:"canonical_extjson"`
		RelaxedExtJSON    *string `json:"relaxed_extjson"`
		DegenerateBSON    *string `json:"degenerate_bson"`
		DegenerateExtJSON *string `json:"degenerate_extjson"`
		ConvertedBSON     *string `json:"converted_bson"`
		ConvertedExtJSON  *string `json:"converted_extjson"`
		Lossy             bool    `json:"lossy"`
	} `json:"valid"`
	DecodeErrors []struct {
		Description string `json:"description"`
		BSON        string `json:"bson"`
	} `json:"decodeErrors"`
	ParseErrors []struct {
		Description string `json:"description"`
		String      string `json:"string"`
	} `json:"parseErrors"`
}

// corpusCodec is one way from BSON to Extended JSON and back.
type corpusCodec struct {
	name string
	// through reads a document and writes it again.
	through func(doc []byte) ([]byte, error)
	// toJSON and fromJSON convert.
	toJSON   func(doc []byte, canonical bool) ([]byte, error)
	fromJSON func(text []byte) ([]byte, error)
	// normalizes is whether through puts degenerate documents right.
	normalizes bool
	// loses is whether through goes by way of text, which some values do not survive.
	loses bool
}

func TestCorpus(t *testing.T) {
	for _, file := range spectest.Files(t, "bson-corpus/tests/*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var suite corpusFile
			spectest.Decode(t, file, &suite)
			for _, codec := range corpusCodecs {
				t.Run(codec.name, func(t *testing.T) { testCorpusFile(t, &suite, codec) })
			}
		})
	}
}

func testCorpusFile(t *testing.T, suite *corpusFile, codec corpusCodec) {
	for _, tt := range suite.Valid {
		t.Run(tt.Description, func(t *testing.T) {
			cB := unhex(t, tt.CanonicalBSON)
			if through := call(t, codec.through, cB); !tt.Lossy || !codec.loses {
				checkBytes(t, "BSON through itself", cB, through)
			}
			checkJSON(t, "canonical from BSON", tt.CanonicalExtJSON, call2(t, codec.toJSON, cB, true))
			fromCanonical := call(t, codec.fromJSON, []byte(tt.CanonicalExtJSON))
			if !tt.Lossy {
				checkBytes(t, "BSON from canonical", cB, fromCanonical)
			}
			checkJSON(t, "canonical through itself", tt.CanonicalExtJSON, call2(t, codec.toJSON, fromCanonical, true))
			if tt.RelaxedExtJSON != nil {
				checkJSON(t, "relaxed from BSON", *tt.RelaxedExtJSON, call2(t, codec.toJSON, cB, false))
				fromRelaxed := call(t, codec.fromJSON, []byte(*tt.RelaxedExtJSON))
				checkJSON(t, "relaxed through itself", *tt.RelaxedExtJSON, call2(t, codec.toJSON, fromRelaxed, false))
			}
			if tt.DegenerateBSON != nil {
				dB := unhex(t, *tt.DegenerateBSON)
				if codec.normalizes {
					checkBytes(t, "degenerate BSON through itself", cB, call(t, codec.through, dB))
				}
				checkJSON(t, "canonical from degenerate BSON", tt.CanonicalExtJSON, call2(t, codec.toJSON, dB, true))
				if tt.RelaxedExtJSON != nil {
					checkJSON(t, "relaxed from degenerate BSON", *tt.RelaxedExtJSON, call2(t, codec.toJSON, dB, false))
				}
			}
			if tt.DegenerateExtJSON != nil {
				fromDegenerate := call(t, codec.fromJSON, []byte(*tt.DegenerateExtJSON))
				if !tt.Lossy {
					checkBytes(t, "BSON from degenerate", cB, fromDegenerate)
				}
				checkJSON(t, "canonical from degenerate", tt.CanonicalExtJSON, call2(t, codec.toJSON, fromDegenerate, true))
			}
			if tt.ConvertedBSON != nil {
				converted := unhex(t, *tt.ConvertedBSON)
				checkBytes(t, "converted BSON through itself", converted, call(t, codec.through, converted))
				checkJSON(t, "canonical from converted BSON", *tt.ConvertedExtJSON, call2(t, codec.toJSON, converted, true))
				checkBytes(t, "BSON from converted", converted, call(t, codec.fromJSON, []byte(*tt.ConvertedExtJSON)))
			}
		})
	}
	for _, tt := range suite.DecodeErrors {
		t.Run(tt.Description, func(t *testing.T) {
			doc := unhex(t, tt.BSON)
			if _, err := codec.through(doc); err == nil {
				t.Error("the document is read without an error")
			}
			if text, err := codec.toJSON(doc, true); err == nil {
				t.Errorf("the document becomes %s", text)
			}
		})
	}
	for _, tt := range suite.ParseErrors {
		t.Run(tt.Description, func(t *testing.T) {
			switch suite.BSONType {
			case "0x00", "0x05":
				if !json.Valid([]byte(tt.String)) {
					t.Fatalf("%s is not even JSON", tt.String)
				}
				if doc, err := codec.fromJSON([]byte(tt.String)); err == nil {
					t.Errorf("%s becomes %x", tt.String, doc)
				}
			case "0x13":
				if d, err := bson.ParseDecimal128(tt.String); err == nil {
					t.Errorf("%q becomes %s", tt.String, d)
				}
				text := `{"d":{"$numberDecimal":` + strconv.Quote(tt.String) + `}}`
				if doc, err := codec.fromJSON([]byte(text)); err == nil {
					t.Errorf("%s becomes %x", text, doc)
				}
			default:
				t.Fatalf("parse errors for the type %s: the specification does not say what they are", suite.BSONType)
			}
		})
	}
}

var corpusCodecs = []corpusCodec{
	{
		name: "Raw",
		through: func(doc []byte) ([]byte, error) {
			return doc, bson.Raw(doc).Validate()
		},
		toJSON: func(doc []byte, canonical bool) ([]byte, error) {
			return bson.AppendExtJSON(nil, doc, canonical)
		},
		fromJSON: func(text []byte) ([]byte, error) {
			doc, err := bson.ParseExtJSON(text)
			if err != nil {
				return nil, err
			}
			return doc, doc.Validate()
		},
	},
	{
		name: "D",
		through: func(doc []byte) ([]byte, error) {
			var d bson.D
			if err := bson.Unmarshal(doc, &d); err != nil {
				return nil, err
			}
			return bson.Marshal(d)
		},
		toJSON: func(doc []byte, canonical bool) ([]byte, error) {
			var d bson.D
			if err := bson.Unmarshal(doc, &d); err != nil {
				return nil, err
			}
			return bson.MarshalExtJSON(d, canonical)
		},
		fromJSON: func(text []byte) ([]byte, error) {
			var d bson.D
			if err := bson.UnmarshalExtJSON(text, &d); err != nil {
				return nil, err
			}
			return bson.Marshal(d)
		},
		normalizes: true,
	},
	{
		name: "streams",
		through: func(doc []byte) ([]byte, error) {
			var text bytes.Buffer
			e := bson.NewExtJSONEncoder(&text)
			e.Canonical = true
			if err := e.Encode(bson.Raw(doc)); err != nil {
				return nil, err
			}
			return streamed(text.Bytes())
		},
		toJSON: func(doc []byte, canonical bool) ([]byte, error) {
			var text bytes.Buffer
			e := bson.NewExtJSONEncoder(&text)
			e.Canonical = canonical
			err := e.Encode(bson.Raw(doc))
			return text.Bytes(), err
		},
		fromJSON:   streamed,
		normalizes: true,
		loses:      true,
	},
}

// streamed reads the text twice out of a reader that gives a byte at a time.
func streamed(text []byte) ([]byte, error) {
	d := bson.NewExtJSONDecoder(iotest.OneByteReader(io.MultiReader(bytes.NewReader(text), bytes.NewReader(text))))
	first, err := d.Next()
	if err != nil {
		return nil, err
	}
	second, err := d.Next()
	if err != nil {
		return nil, err
	}
	if !bson.Equal(first, second) {
		return nil, fmt.Errorf("read %x first, then %x", first, second)
	}
	if _, err := d.Next(); err != io.EOF {
		return nil, fmt.Errorf("error %v, want io.EOF", err)
	}
	return first, nil
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func call(t *testing.T, f func([]byte) ([]byte, error), in []byte) []byte {
	t.Helper()
	out, err := f(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func call2(t *testing.T, f func([]byte, bool) ([]byte, error), in []byte, canonical bool) []byte {
	t.Helper()
	out, err := f(in, canonical)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func checkBytes(t *testing.T, what string, want, got []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\ngot  %x\nwant %x", what, got, want)
	}
}

func checkJSON(t *testing.T, what, want string, got []byte) {
	t.Helper()
	if g, w := normalJSON(t, got), normalJSON(t, []byte(want)); g != w {
		t.Errorf("%s:\ngot  %s\nwant %s", what, g, w)
	}
}

// normalJSON writes JSON in one way: without white space, with one kind of escape sequence and of
// number. The order of the keys stays.
func normalJSON(t *testing.T, text []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out strings.Builder
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch token := token.(type) {
		case json.Delim:
			out.WriteString(token.String())
		case json.Number:
			out.WriteString(normalNumber(token.String()))
		case string:
			// A double inside of a string is no more portable than outside of one.
			if f, err := strconv.ParseFloat(token, 64); err == nil && strings.Contains(out.String(), "$numberDouble") {
				token = strconv.FormatFloat(f, 'g', -1, 64)
			}
			out.WriteString(strconv.Quote(token))
		default:
			b, err := json.Marshal(token)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(b)
		}
		out.WriteByte(' ')
	}
	return out.String()
}

func normalNumber(s string) string {
	if !strings.ContainsAny(s, ".eE") {
		return s
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return "double " + strconv.FormatFloat(f, 'g', -1, 64)
}
