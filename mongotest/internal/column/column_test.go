package column

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"allium/bson"
)

func int32Value(n int32) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, n)}
}

func int64Value(t bson.Type, n int64) bson.RawValue {
	return bson.RawValue{Type: t, Value: bson.AppendInt64Value(nil, n)}
}

func text(s string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, s)}
}

// check encodes and decodes values, and returns the column.
func check(t *testing.T, values []bson.RawValue) []byte {
	t.Helper()
	data := Encode(values)
	got, err := Decode(data)
	if err != nil || len(got) != len(values) {
		t.Fatalf("%d values of %d, %v", len(got), len(values), err)
	}
	for i := range got {
		if got[i].Type != values[i].Type || string(got[i].Value) != string(values[i].Value) {
			t.Fatalf("value %d is %v, want %v", i, got[i], values[i])
		}
	}
	return data
}

// Columns of a bucket that a server wrote (from a question in MongoDB's community forum): the times
// of 577 measurements, the last of which is the bucket's control.max, and a boolean of each.
func TestColumnsOfServer(t *testing.T) {
	decode := func(text string) []bson.RawValue {
		t.Helper()
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		values, err := Decode(data)
		if err != nil || len(values) != 577 {
			t.Fatalf("%d values, %v", len(values), err)
		}
		if got := hex.EncodeToString(Encode(values)); got != text {
			t.Errorf("written again\n got %s\nwant %s", got, text)
		}
		return values
	}
	times := decode("0900482bdc4181010000870a7d0000000000001f0000000000000004000000000000000a00000000d0f77c01000000000000001f0000000000000006000000000000000e0000000000000000")
	if last, _ := times[576].DateTime(); last != bson.NewDateTime(time.Date(2022, 6, 8, 5, 58, 54, 0, time.UTC)) {
		t.Errorf("the last time is %v", last.Time())
	}
	decode("0800008f02000000000000209240200180040020121200000000000002000000008001000200000000000000622009098404000002986160000000000200001860801900010000000000000082810400004800000260000000060000020000000000000002000000062609094208210118000600026060809909006102000000000000008282040000000600801200000060928101090000000000000000")
}

func TestEncode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	columns := map[string]func(i int) bson.RawValue{
		"constant": func(int) bson.RawValue { return int32Value(7) },
		"counting": func(i int) bson.RawValue { return int32Value(int32(i)) },
		"times":    func(i int) bson.RawValue { return int64Value(bson.TypeDateTime, 1_700_000_000_000+int64(i)*1000) },
		"extremes": func(i int) bson.RawValue {
			return int64Value(bson.TypeInt64, [...]int64{math.MinInt64, 0, math.MaxInt64, -1}[i%4])
		},
		"int32s": func(int) bson.RawValue { return int32Value(int32(rng.Uint32())) },
		"wide":   func(i int) bson.RawValue { return int64Value(bson.TypeInt64, int64(rng.Uint64()>>rng.IntN(64))) },
		"narrow": func(i int) bson.RawValue { return int64Value(bson.TypeInt64, rng.Int64N(1<<rng.IntN(12))) },
		"texts":  func(i int) bson.RawValue { return text(string(rune('a' + i/50%3))) },
		"doubles": func(i int) bson.RawValue {
			return int64Value(bson.TypeDouble, int64(math.Float64bits(20+float64(i%9)/8)))
		},
		"booleans": func(i int) bson.RawValue {
			return bson.RawValue{Type: bson.TypeBoolean, Value: []byte{byte(i / 3 % 2)}}
		},
		"sparse":       func(i int) bson.RawValue { return [2]bson.RawValue{{}, int32Value(int32(i))}[rng.IntN(2)] },
		"of two types": func(i int) bson.RawValue { return [2]bson.RawValue{text("x"), int32Value(int32(i))}[i/10%2] },
		"late": func(i int) bson.RawValue {
			if i < 400 {
				return bson.RawValue{}
			}
			return bson.RawValue{Type: bson.TypeNull}
		},
		"never": func(int) bson.RawValue { return bson.RawValue{} },
	}
	sizes := map[string]int{"constant": 60, "counting": 80, "times": 80, "texts": 700, "booleans": 300, "never": 60}
	for name, value := range columns {
		for _, n := range []int{0, 1, 2, 59, 60, 61, 119, 120, 121, 1000, 5000} {
			values := make([]bson.RawValue, n)
			for i := range values {
				values[i] = value(i)
			}
			if data := check(t, values); n == 1000 && sizes[name] > 0 && len(data) > sizes[name] {
				t.Errorf("1000 values %s take %d bytes", name, len(data))
			}
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	block := func(word uint64) []byte {
		return append(binary.LittleEndian.AppendUint64([]byte{0x10, 0, 1, 0, 0, 0, 0x80}, word), 0)
	}
	for name, data := range map[string][]byte{
		"nothing": {}, "no end": {0x0a, 0}, "more after the end": {0, 0}, "half a value": {0x10, 0, 1}, "half a block": {0x0a, 0, 0x80, 1}, "scaled": {0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"interleaved": {0xf1, 5, 0, 0, 0, 0, 0, 0}, "selector 0": block(0), "an extended selector": block(0x17), "a difference to nothing": append(binary.LittleEndian.AppendUint64([]byte{0x80}, 1), 0),
		"a difference of texts": append(binary.LittleEndian.AppendUint64([]byte{0x02, 0, 2, 0, 0, 0, 'a', 0, 0x80}, 1<<4|14), 0),
	} {
		if values, err := Decode(data); err == nil {
			t.Errorf("%s: %v", name, values)
		}
	}
	bomb := []byte{0x0a, 0}
	for range 600 {
		bomb = append(binary.LittleEndian.AppendUint64(append(bomb, 0x80), 0xff), []byte{}...)
	}
	if _, err := Decode(append(bomb, 0)); err == nil {
		t.Error("more than a million values are unfolded")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode([]bson.RawValue{int32Value(1), int32Value(2), {}, text("x")}))
	f.Fuzz(func(t *testing.T, data []byte) {
		values, err := Decode(data)
		if err == nil && len(values) < 10_000 {
			check(t, values)
		}
	})
}
