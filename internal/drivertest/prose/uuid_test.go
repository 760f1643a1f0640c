package prose

import (
	"errors"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
)

// The prose tests of the specification BSON Binary UUID that speak of a client; the others are in
// package bson.

var proseUUID, _ = bson.ParseUUID("00112233-4455-6677-8899-aabbccddeeff")

// withRepresentation returns a client's collection.
func withRepresentation(t *testing.T, d *testdeploy.Deployment, name string, opts ...allium.ClientOptions) *allium.UntypedCollection {
	t.Helper()
	return rig.Open(t, d.URIWith("uuidRepresentation="+name), opts...).Database("x").Collection("y")
}

// insertOnly empties the collection before it inserts.
func insertOnly(t *testing.T, c *allium.UntypedCollection, doc bson.D) error {
	t.Helper()
	if _, err := c.DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.InsertOne(t.Context(), doc)
	return err
}

func TestProseUUIDImplicitEncoding(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.Any)
	raw := allium.CollectionOf[bson.Raw](rig.Open(t, d.URI()).Database("x"), "y")
	for _, tt := range []struct{ number, name string }{
		{"1", "javaLegacy"}, {"2", "csharpLegacy"}, {"3", "pythonLegacy"}, {"4", "standard"},
	} {
		as, err := bson.ParseUUIDRepresentation(tt.name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := proseUUID.BinaryAs(as)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(tt.number, func(t *testing.T) {
			// Options that say nothing of UUIDs leave the connection string's choice alone.
			for _, opts := range []allium.ClientOptions{{}, {BSON: &bson.Options{MinSize: true}}} {
				c := withRepresentation(t, d, tt.name, opts).With(allium.CollectionOptions{BSON: &bson.Options{NilSliceAsNull: true}})
				if err := insertOnly(t, c, bson.D{{Key: "_id", Value: proseUUID}}); err != nil {
					t.Fatal(err)
				}
				stored, err := raw.FindOne(t.Context(), bson.D{})
				if err != nil {
					t.Fatal(err)
				}
				if got, ok := stored.Lookup("_id").Binary(); !ok || !got.Equal(want) {
					t.Errorf("%s is stored as %v, want %v", tt.name, stored.Lookup("_id"), want)
				}
			}
		})
	}
	t.Run("5", func(t *testing.T) {
		err := insertOnly(t, withRepresentation(t, d, "unspecified"), bson.D{{Key: "_id", Value: proseUUID}})
		var ee *bson.EncodeError
		if !errors.As(err, &ee) || ee.Path != "_id" {
			t.Errorf("got %v, want an EncodeError at _id", err)
		}
	})
	t.Run("options first", func(t *testing.T) {
		c := withRepresentation(t, d, "javaLegacy", allium.ClientOptions{BSON: &bson.Options{UUID: bson.UUIDStandard}})
		if err := insertOnly(t, c, bson.D{{Key: "_id", Value: proseUUID}}); err != nil {
			t.Fatal(err)
		}
		if _, err := raw.FindOne(t.Context(), bson.D{{Key: "_id", Value: proseUUID.Binary()}}); err != nil {
			t.Error(err)
		}
	})
}

func TestProseUUIDImplicitDecoding(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.Any)
	for _, tt := range []struct {
		number, name                 string
		legacyAs                     bson.UUIDRepresentation
		standardIsUUID, legacyIsUUID bool
	}{
		{"1", "javaLegacy", bson.UUIDJavaLegacy, false, true},
		{"1", "csharpLegacy", bson.UUIDCSharpLegacy, false, true},
		{"1", "pythonLegacy", bson.UUIDPythonLegacy, false, true},
		{"2", "standard", bson.UUIDPythonLegacy, true, false},
		{"3", "unspecified", bson.UUIDPythonLegacy, false, false},
		{"3", "unspecified", bson.UUIDCSharpLegacy, false, false},
	} {
		t.Run(tt.number+" "+tt.name, func(t *testing.T) {
			standard := proseUUID.Binary()
			legacy, err := proseUUID.BinaryAs(tt.legacyAs)
			if err != nil {
				t.Fatal(err)
			}
			c := withRepresentation(t, d, tt.name)
			if err := insertOnly(t, c, bson.D{{Key: "standard", Value: standard}, {Key: "legacy", Value: legacy}}); err != nil {
				t.Fatal(err)
			}
			found, err := c.FindOne(t.Context(), bson.D{})
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range []struct {
				key    string
				isUUID bool
				stored bson.Binary
			}{{"standard", tt.standardIsUUID, standard}, {"legacy", tt.legacyIsUUID, legacy}} {
				got, _ := found.Get(field.key)
				switch got := got.(type) {
				case bson.UUID:
					if !field.isUUID || got != proseUUID {
						t.Errorf("%s: got %v", field.key, got)
					}
				case bson.Binary:
					if field.isUUID || !got.Equal(field.stored) {
						t.Errorf("%s: got %v", field.key, got)
					}
				default:
					t.Errorf("%s: got %T", field.key, got)
				}
			}
		})
	}
}
