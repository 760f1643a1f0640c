package keyservice

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"allium/encryption/kms"
)

// The examples of the KMIP specification, section 9.1.2.
func TestTTLVExamples(t *testing.T) {
	for _, test := range []struct {
		item item
		want string
	}{
		{integer(0x420020, 8), "42002002000000040000000800000000"},
		{enum(0x420020, 255), "4200200500000004000000ff00000000"},
		{boolean(0x420020, true), "42002006000000080000000000000001"},
		{text(0x420020, "Hello World"), "420020070000000b48656c6c6f20576f726c640000000000"},
		{octets(0x420020, []byte{1, 2, 3}), "42002008000000030102030000000000"},
		{structure(0x420020, enum(0x420004, 254), integer(0x420005, 255)),
			"42002001000000204200040500000004000000fe000000004200050200000004000000ff00000000"},
	} {
		if got := hex.EncodeToString(test.item.append(nil)); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}

// What a server says of an operation that it did not do is in the error.
func TestKMIPFailure(t *testing.T) {
	s := startServer(t)
	c := newClient(t, s, goodProviders(s))
	_, _, err := c.Wrap(t.Context(), "kmip", kms.KMIPKey{ID: "no such"}, material(0))
	if err == nil || !strings.Contains(err.Error(), "Operation Failed") || !strings.Contains(err.Error(), "Item Not Found") || !strings.Contains(err.Error(), "localhost:5698") {
		t.Error(err)
	}
}

func FuzzTTLV(f *testing.F) {
	f.Add(registerRequest(material(0)))
	f.Add(structure(tagResponseMessage, structure(tagBatchItem, enum(tagResultStatus, 0), structure(tagResponsePayload, text(tagUniqueIdentifier, "1")))).append(nil))
	f.Add(structure(tagResponseMessage, structure(tagBatchItem, enum(tagResultStatus, 1), text(tagResultMessage, "no"))).append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := parseTTLV(data)
		if err != nil {
			if !errors.Is(err, errTTLV) {
				t.Error(err)
			}
		} else if again, err := parseTTLV(i.append(nil)); err != nil || !bytes.Equal(again.append(nil), i.append(nil)) {
			t.Errorf("%x: written and read again: %v", data, err)
		}
		kmipPayload(data)
	})
}
