package bson

import (
	"errors"
	"reflect"
	"testing"
)

func TestEncryptedValue(t *testing.T) {
	id, _ := ParseUUID("00112233-4455-6677-8899-aabbccddeeff")
	want := EncryptedValue{Algorithm: EncryptedRandom, KeyID: id, OriginalType: TypeString, Ciphertext: []byte{1, 2, 3}}
	b := want.Binary()
	if b.Subtype != 6 || len(b.Data) != 21 || b.Data[0] != 2 || b.Data[16] != 0xFF || b.Data[17] != 2 {
		t.Errorf("got %v", b)
	}
	if got, err := b.Encrypted(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, data := range [][]byte{nil, {1}, make([]byte, 30), append([]byte{7}, make([]byte, 30)...), b.Data[:17]} {
		if got, err := (Binary{Subtype: BinaryEncrypted, Data: data}).Encrypted(); err == nil {
			t.Errorf("%x is accepted as %v", data, got)
		}
	}
	if got, err := (Binary{Data: b.Data}).Encrypted(); err == nil {
		t.Errorf("a generic binary is accepted as %v", got)
	}
	if _, err := (Binary{Subtype: BinaryEncrypted, Data: []byte{0, 5, 0, 0, 0, 0}}).Encrypted(); !errors.Is(err, ErrNotEncrypted) {
		t.Errorf("got %v, want ErrNotEncrypted", err)
	}
}
