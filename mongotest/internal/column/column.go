// Package column reads and writes compressed columns (BSON binary subtype 7), in which buckets of
// time series keep the values of a field.
//
// A column is a sequence of values as BSON elements without a name, and of blocks that say how the
// next values differ from the one before: a control byte with the number of blocks, and blocks of
// 64 bits that pack whole numbers ("Simple-8b"). Numbers and booleans are told by their difference,
// dates by how much the difference has changed; 0 repeats a value of any type, and a number of ones
// only is a measurement without the field.
package column

import (
	"encoding/binary"
	"fmt"
	"math"

	"allium/bson"
)

// widths are the bits of a number in a block by its selector, the four lowest bits; a block has 60
// bits for numbers, with selectors 7 and 8 56.
var widths = [15]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 60}

const (
	repeated  = 15  // the selector of a block that repeats the number before
	runLength = 120 // numbers, or a multiple
	maxRuns   = 16
	maxBlocks = 16             // after a control byte
	skip      = math.MaxUint64 // among the numbers of a column: there is no value
	blocks    = 0x80           // the control byte of one block; the low bits say how many more
	largest   = 1<<60 - 2      // number in a block
)

// slots returns how many numbers a block with this selector has, and where they begin.
func slots(selector int) (n, from int) {
	switch selector {
	case 7, 8:
		return 56 / widths[selector], 8
	}
	return 60 / widths[selector], 4
}

// predictor tells what the value before says about the next one.
type predictor struct {
	last  bson.RawValue
	delta int64 // of the two values before, of types whose difference is constant
}

// whole returns a value as a whole number, if differences of its type are written.
func whole(v bson.RawValue) (n int64, ok bool) {
	switch v.Type {
	case bson.TypeInt32:
		return int64(int32(binary.LittleEndian.Uint32(v.Value))), true
	case bson.TypeInt64, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeDouble: // a double by its bits
		return int64(binary.LittleEndian.Uint64(v.Value)), true
	case bson.TypeBoolean:
		return int64(v.Value[0]), true
	}
	return 0, false
}

// steady reports whether what is written is the change of the difference.
func steady(t bson.Type) bool { return t == bson.TypeDateTime || t == bson.TypeTimestamp }

// number returns what is written for a value, and false if that has to be the value itself.
func (p *predictor) number(v bson.RawValue) (n uint64, ok bool) {
	if p.last.Type == 0 || v.Type != p.last.Type {
		return 0, false
	}
	now, isNumber := whole(v)
	if !isNumber {
		return 0, string(v.Value) == string(p.last.Value)
	}
	before, _ := whole(p.last)
	d := now - before
	if steady(v.Type) {
		d, p.delta = d-p.delta, d
	}
	n = uint64(d)<<1 ^ uint64(d>>63) // small for small differences of either sign
	return n, n <= largest
}

// value returns the value that a number stands for.
func (p *predictor) value(n uint64) (bson.RawValue, error) {
	before, isNumber := whole(p.last)
	switch {
	case p.last.Type == 0:
		return bson.RawValue{}, fmt.Errorf("the column has a difference to no value")
	case !isNumber && n == 0:
		return p.last, nil
	case !isNumber:
		return bson.RawValue{}, fmt.Errorf("differences of values of type %s are not supported", p.last.Type)
	}
	d := int64(n>>1) ^ -int64(n&1)
	if steady(p.last.Type) {
		d += p.delta
		p.delta = d
	}
	v := bson.RawValue{Type: p.last.Type}
	switch v.Type {
	case bson.TypeInt32:
		v.Value = binary.LittleEndian.AppendUint32(nil, uint32(before+d))
	case bson.TypeBoolean:
		v.Value = []byte{byte(before + d)}
	default:
		v.Value = binary.LittleEndian.AppendUint64(nil, uint64(before+d))
	}
	p.last = v
	return v, nil
}

// Encode returns the column with these values. One of type 0 is a measurement without the field.
func Encode(values []bson.RawValue) []byte {
	var dst []byte
	var p predictor
	var numbers []uint64
	for _, v := range values {
		if v.Type == 0 {
			numbers = append(numbers, skip)
			continue
		}
		n, ok := p.number(v)
		if ok {
			numbers = append(numbers, n)
		} else {
			dst = pack(dst, numbers)
			numbers = numbers[:0]
			dst = append(append(dst, byte(v.Type), 0), v.Value...)
			p.delta = 0
		}
		p.last = v
	}
	return append(pack(dst, numbers), 0)
}

// pack appends numbers as blocks.
func pack(dst []byte, numbers []uint64) []byte {
	control := -1
	var last uint64
	for len(numbers) > 0 {
		if control < 0 || dst[control] == blocks+maxBlocks-1 {
			control = len(dst)
			dst = append(dst, blocks-1)
			last = 0
		}
		dst[control]++
		run := 0
		for run < len(numbers) && run < maxRuns*runLength && numbers[run] == last {
			run++
		}
		if run >= runLength {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(repeated|(run/runLength-1)<<4))
			numbers = numbers[run/runLength*runLength:]
			continue
		}
		for selector := 1; ; selector++ {
			n, from := slots(selector)
			word, ok := block(numbers, n, from, widths[selector])
			if !ok {
				continue
			}
			dst = binary.LittleEndian.AppendUint64(dst, word|uint64(selector))
			last, numbers = numbers[n-1], numbers[n:]
			break
		}
	}
	return dst
}

// block packs the first n numbers, each of so many bits, if they fit.
func block(numbers []uint64, n, from, bits int) (word uint64, ok bool) {
	if len(numbers) < n {
		return 0, false
	}
	ones := uint64(1)<<bits - 1
	for i, x := range numbers[:n] {
		switch {
		case x == skip:
			x = ones
		case x >= ones:
			return 0, false
		}
		word |= x << (from + i*bits)
	}
	return word, true
}

// maxValues bounds what a column may unfold to: more than any bucket has.
const maxValues = 1 << 20

// Decode returns the values of a column. Columns of the server can be in forms that it does not
// read: those of documents and arrays, of scaled doubles and of strings that resemble each other.
func Decode(data []byte) (values []bson.RawValue, err error) {
	var p predictor
	for len(data) > 0 {
		control := data[0]
		switch {
		case control == 0:
			if len(data) > 1 {
				return nil, fmt.Errorf("the column goes on after its end")
			}
			return values, nil
		case control >= blocks && control < blocks+maxBlocks:
			n := int(control-blocks) + 1
			if len(data) < 1+8*n {
				return nil, fmt.Errorf("the column ends within a block")
			}
			if values, err = p.unpack(values, data[1:1+8*n]); err != nil {
				return nil, err
			}
			data = data[1+8*n:]
		case control > blocks && control < 0xff:
			return nil, fmt.Errorf("blocks of kind 0x%02x are not supported", control)
		default:
			_, v, rest, err := bson.ReadElement(data)
			if err != nil {
				return nil, err
			}
			p = predictor{last: v}
			values, data = append(values, v), rest
		}
	}
	return nil, fmt.Errorf("the column has no end")
}

// unpack appends the values of some blocks.
func (p *predictor) unpack(values []bson.RawValue, data []byte) ([]bson.RawValue, error) {
	add := func(n uint64, times int) error {
		if len(values)+times > maxValues {
			return fmt.Errorf("the column has more than %d values", maxValues)
		}
		for range times {
			var v bson.RawValue
			if n != skip {
				var err error
				if v, err = p.value(n); err != nil {
					return err
				}
			}
			values = append(values, v)
		}
		return nil
	}
	last := uint64(0)
	for ; len(data) > 0; data = data[8:] {
		word := binary.LittleEndian.Uint64(data)
		selector := int(word & 15)
		if selector == repeated {
			if err := add(last, (int(word>>4&15)+1)*runLength); err != nil {
				return nil, err
			}
			continue
		}
		if selector == 0 || (selector == 7 || selector == 8) && word>>4&15 != 0 {
			return nil, fmt.Errorf("a block with selector 0x%02x is not supported", word&255)
		}
		n, from := slots(selector)
		ones := uint64(1)<<widths[selector] - 1
		for i := range n {
			last = word >> (from + i*widths[selector]) & ones
			if last == ones {
				last = skip
			}
			if err := add(last, 1); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}
