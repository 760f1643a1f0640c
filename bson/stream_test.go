package bson

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"
)

func TestStream(t *testing.T) {
	var file bytes.Buffer
	e := NewEncoder(&file)
	var want []D
	for i := range 20 {
		d := D{{"i", int32(i)}, {"pad", string(make([]byte, i*i*i))}}
		want = append(want, d)
		if err := e.Encode(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Encode(make(chan int)); err == nil {
		t.Error("a channel: no error")
	}
	data := file.Bytes()
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(data), "by byte": iotest.OneByteReader(bytes.NewReader(data))} {
		d := NewDecoder(r)
		for i := range want {
			var got D
			if err := d.Decode(&got); err != nil || !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("%s: document %d: %v", name, i, err)
			}
		}
		if err := d.Decode(new(D)); err != io.EOF {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
	n := 0
	for doc, err := range NewDecoder(bytes.NewReader(data)).All() {
		if err != nil || doc.Validate() != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("All yields %d documents", n)
	}
	// A document that does not fit is passed over.
	d := NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&struct{ I string }{}); err == nil {
		t.Error("an integer into a string: no error")
	}
	var second struct{ I int }
	if err := d.Decode(&second); err != nil || second.I != 1 {
		t.Errorf("got %+v, %v", second, err)
	}
}

func TestStreamErrors(t *testing.T) {
	for name, test := range map[string]struct {
		data []byte
		want error
	}{
		"ends in the length": {[]byte{5, 0}, io.ErrUnexpectedEOF},
		"ends after it":      {[]byte{5, 0, 0, 0}, io.ErrUnexpectedEOF},
		"huge":               {[]byte{0xFF, 0xFF, 0xFF, 0x7F, 1, 2, 3}, io.ErrUnexpectedEOF},
		"short":              {[]byte{4, 0, 0, 0}, nil},
		"negative":           {[]byte{0, 0, 0, 0x80}, nil},
		"no end":             {[]byte{5, 0, 0, 0, 1}, nil},
	} {
		d := NewDecoder(bytes.NewReader(test.data))
		_, err := d.Next()
		if err == nil || err == io.EOF || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, again := d.Next(); again != err {
			t.Errorf("%s: then %v", name, again)
		}
	}
	d := NewDecoder(bytes.NewReader([]byte{100, 0, 0, 0}))
	d.SetMaxSize(99)
	if _, err := d.Next(); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("over the limit: %v", err)
	}
	broken := NewEncoder(brokenWriter{})
	if err := broken.Encode(D{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
