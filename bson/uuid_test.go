package bson_test

// The prose tests of the specification BSON Binary UUID. The implicit ones, which speak of a
// client, are about what the client hands to this package: Options.UUID.

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"allium/bson"
)

const uuidText = "00112233-4455-6677-8899-aabbccddeeff"

var theUUID, _ = bson.ParseUUID(uuidText)

// uuidForms are the stored forms of theUUID.
var uuidForms = []struct {
	as      bson.UUIDRepresentation
	subtype byte
	data    string
}{
	{bson.UUIDStandard, 4, "00112233445566778899AABBCCDDEEFF"},
	{bson.UUIDJavaLegacy, 3, "7766554433221100FFEEDDCCBBAA9988"},
	{bson.UUIDCSharpLegacy, 3, "33221100554477668899AABBCCDDEEFF"},
	{bson.UUIDPythonLegacy, 3, "00112233445566778899AABBCCDDEEFF"},
}

func checkUUIDBinary(t *testing.T, b bson.Binary, subtype byte, data string) {
	t.Helper()
	if got := strings.ToUpper(hex.EncodeToString(b.Data)); b.Subtype != subtype || got != data {
		t.Errorf("got %d and %s, want %d and %s", b.Subtype, got, subtype, data)
	}
}

func TestUUIDProseExplicitEncoding(t *testing.T) {
	t.Run("1", func(t *testing.T) {
		checkUUIDBinary(t, theUUID.Binary(), 4, "00112233445566778899AABBCCDDEEFF")
	})
	for i, form := range uuidForms {
		t.Run(fmt.Sprint(i+2), func(t *testing.T) {
			b, err := theUUID.BinaryAs(form.as)
			if err != nil {
				t.Fatal(err)
			}
			checkUUIDBinary(t, b, form.subtype, form.data)
		})
	}
	t.Run("6", func(t *testing.T) {
		if b, err := theUUID.BinaryAs(bson.UUIDUnspecified); err == nil {
			t.Errorf("got %v, want an error", b)
		}
	})
}

func TestUUIDProseExplicitDecoding(t *testing.T) {
	for i, form := range uuidForms {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			b := bson.Binary{Subtype: form.subtype, Data: unhex(t, form.data)}
			if id, err := b.UUID(); (err == nil) != (form.subtype == 4) || err == nil && id != theUUID {
				t.Errorf("UUID: got %s, %v", id, err)
			}
			for _, as := range []bson.UUIDRepresentation{bson.UUIDStandard, bson.UUIDUnspecified, form.as} {
				if id, err := b.UUIDAs(as); (err == nil) != (as == form.as) || err == nil && id != theUUID {
					t.Errorf("UUIDAs %s: got %s, %v", as, id, err)
				}
			}
			for _, other := range uuidForms {
				if id, err := b.UUIDAs(other.as); (err == nil) != (other.subtype == form.subtype) || err == nil && (id == theUUID) != (other.as == form.as) {
					t.Errorf("UUIDAs %s: got %s, %v", other.as, id, err)
				}
			}
		})
	}
}

func TestUUIDProseImplicitEncoding(t *testing.T) {
	for i, name := range []string{"javaLegacy", "csharpLegacy", "pythonLegacy", "standard"} {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			as, err := bson.ParseUUIDRepresentation(name)
			if err != nil {
				t.Fatal(err)
			}
			form := uuidForms[(i+1)%len(uuidForms)]
			for _, doc := range []any{
				bson.D{{Key: "_id", Value: theUUID}}, bson.M{"_id": theUUID}, bson.M{"_id": &theUUID},
				struct {
					ID bson.UUID `bson:"_id"`
				}{theUUID},
			} {
				raw, err := bson.Options{UUID: as}.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := bson.Raw(raw).Lookup("_id").Binary()
				checkUUIDBinary(t, b, form.subtype, form.data)
			}
		})
	}
	t.Run("5", func(t *testing.T) {
		if raw, err := (bson.Options{UUID: bson.UUIDUnspecified}).Marshal(bson.D{{Key: "_id", Value: theUUID}}); err == nil {
			t.Errorf("got %v, want an error", bson.Raw(raw))
		}
	})
	t.Run("default", func(t *testing.T) {
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: theUUID}})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := bson.Raw(raw).Lookup("_id").Binary()
		checkUUIDBinary(t, b, 4, "00112233445566778899AABBCCDDEEFF")
	})
}

func TestUUIDProseImplicitDecoding(t *testing.T) {
	check := func(t *testing.T, as, legacyAs bson.UUIDRepresentation, standardIsUUID, legacyIsUUID bool) {
		t.Helper()
		standard := theUUID.Binary()
		legacy, err := theUUID.BinaryAs(legacyAs)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := bson.Marshal(bson.D{{Key: "standard", Value: standard}, {Key: "legacy", Value: legacy}})
		if err != nil {
			t.Fatal(err)
		}
		var d bson.D
		var m bson.M
		if err := (bson.Options{UUID: as}).Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		if err := (bson.Options{UUID: as}).Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		for _, field := range []struct {
			key    string
			isUUID bool
			stored bson.Binary
		}{{"standard", standardIsUUID, standard}, {"legacy", legacyIsUUID, legacy}} {
			inD, _ := d.Get(field.key)
			for _, got := range []any{inD, m[field.key]} {
				if id, ok := got.(bson.UUID); ok != field.isUUID || ok && id != theUUID {
					t.Errorf("%s of %s: got %T %v", field.key, as, got, got)
				}
				if b, ok := got.(bson.Binary); ok == field.isUUID || ok && !b.Equal(field.stored) {
					t.Errorf("%s of %s: got %T %v", field.key, as, got, got)
				}
			}
			// A field that has to be a UUID is one, or an error.
			var strict map[string]bson.UUID
			one, _ := bson.Marshal(bson.D{{Key: field.key, Value: field.stored}})
			if err := (bson.Options{UUID: as}).Unmarshal(one, &strict); (err == nil) != field.isUUID || err == nil && strict[field.key] != theUUID {
				t.Errorf("%s of %s: got %v, %v", field.key, as, strict, err)
			}
		}
	}
	legacy := []bson.UUIDRepresentation{bson.UUIDJavaLegacy, bson.UUIDCSharpLegacy, bson.UUIDPythonLegacy}
	t.Run("1", func(t *testing.T) {
		for _, as := range legacy {
			check(t, as, as, false, true)
		}
	})
	t.Run("2", func(t *testing.T) {
		for _, as := range legacy {
			check(t, bson.UUIDStandard, as, true, false)
		}
	})
	t.Run("3", func(t *testing.T) {
		for _, as := range legacy {
			check(t, bson.UUIDUnspecified, as, false, false)
		}
	})
}

func TestUUIDText(t *testing.T) {
	for _, s := range []string{uuidText, strings.ToUpper(uuidText), strings.ReplaceAll(uuidText, "-", "")} {
		if id, err := bson.ParseUUID(s); err != nil || id != theUUID || id.String() != uuidText {
			t.Errorf("%s: got %s, %v", s, id, err)
		}
	}
	for _, s := range []string{
		"", "00112233-4455-6677-8899-aabbccddeef", "00112233-4455-6677-8899-aabbccddeeff0", "0011-223344556677-8899-aabb-ccddeeff",
		"00112233_4455_6677_8899_aabbccddeeff", "0011223g-4455-6677-8899-aabbccddeeff", "{0112233-4455-6677-8899-aabbccddeef}",
	} {
		if id, err := bson.ParseUUID(s); err == nil {
			t.Errorf("%q is accepted as %s", s, id)
		}
	}
	for _, in := range []string{
		`"` + uuidText + `"`, `{"$uuid":"` + uuidText + `"}`, `{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}`,
	} {
		var id bson.UUID
		if err := json.Unmarshal([]byte(in), &id); err != nil || id != theUUID {
			t.Errorf("%s: got %s, %v", in, id, err)
		}
	}
	if out, err := json.Marshal(theUUID); err != nil || string(out) != `"`+uuidText+`"` {
		t.Errorf("got %s, %v", out, err)
	}
	if a, b := bson.NewUUID(), bson.NewUUID(); a == b || a.String()[14] != '4' || !strings.ContainsRune("89ab", rune(a.String()[19])) {
		t.Errorf("got %s and %s, want two random UUIDs of version 4", a, b)
	}
	for _, s := range []string{"", "default", "Standard", "java"} {
		if r, err := bson.ParseUUIDRepresentation(s); err == nil {
			t.Errorf("%q is accepted as %s", s, r)
		}
	}
}

func ExampleUUID_BinaryAs() {
	id, _ := bson.ParseUUID("00112233-4455-6677-8899-aabbccddeeff")
	old, err := id.BinaryAs(bson.UUIDJavaLegacy)
	fmt.Printf("%d %x %v\n", old.Subtype, old.Data, err)
	back, err := old.UUIDAs(bson.UUIDJavaLegacy)
	fmt.Println(back, err)
	// Output:
	// 3 7766554433221100ffeeddccbbaa9988 <nil>
	// 00112233-4455-6677-8899-aabbccddeeff <nil>
}
