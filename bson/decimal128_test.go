package bson

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"testing"
)

func TestParseDecimal128(t *testing.T) {
	tests := []struct{ in, out string }{
		{"0", "0"}, {"-0", "-0"}, {"+0.0", "0.0"}, {"00.00", "0.00"}, {".5", "0.5"}, {"5.", "5"}, {"017.", "17"},
		{"12.70", "12.70"}, {"-76", "-76"}, {"+0.003", "0.003"}, {"4E+9", "4E+9"}, {"0.73e-7", "7.3E-8"},
		{"0.000001", "0.000001"}, {"0.0000001", "1E-7"}, {"1e100", "1E+100"}, {"12E1", "1.2E+2"},
		{"inf", "Infinity"}, {"-iNfInItY", "-Infinity"}, {"nan", "NaN"}, {"-NaN", "NaN"}, {"+NaN", "NaN"},
		{"9999999999999999999999999999999999", "9999999999999999999999999999999999"},
		{"99999999999999999999999999999999990", "9.999999999999999999999999999999999E+34"},
		{"10000000000000000000000000000000000000000", "1.000000000000000000000000000000000E+40"},
		{"0.00000000000000000000000000000000000000001", "1E-41"},
		{"1E6144", "1.000000000000000000000000000000000E+6144"},
		{"1E6111", "1E+6111"}, {"1E6112", "1.0E+6112"}, {"0E+7000", "0E+6111"}, {"0E-999999999999999999999", "0E-6176"},
		{"1E-6176", "1E-6176"}, {"10E-6177", "1E-6176"}, {"1000E-6178", "1.0E-6175"},
		{"1" + zeros(7000) + "E-7000", "1.000000000000000000000000000000000"},
	}
	for _, tt := range tests {
		d, err := ParseDecimal128(tt.in)
		if err != nil || d.String() != tt.out {
			t.Errorf("ParseDecimal128(%q) = %s, %v, want %s", tt.in, d, err, tt.out)
			continue
		}
		again, err := ParseDecimal128(d.String())
		if err != nil || again != d && !d.IsNaN() {
			t.Errorf("ParseDecimal128(%q) = %s, %v, and again %s", tt.in, d, err, again)
		}
	}
	failures := []struct {
		in  string
		err error
	}{
		{"", ErrDecimal128Syntax}, {"+", ErrDecimal128Syntax}, {".", ErrDecimal128Syntax}, {"-.", ErrDecimal128Syntax},
		{"1.2.3", ErrDecimal128Syntax}, {"1e", ErrDecimal128Syntax}, {"1e+", ErrDecimal128Syntax}, {"e1", ErrDecimal128Syntax},
		{"1e1.0", ErrDecimal128Syntax}, {" 1", ErrDecimal128Syntax}, {"1 ", ErrDecimal128Syntax}, {"1_0", ErrDecimal128Syntax},
		{"0x1", ErrDecimal128Syntax}, {"infinit", ErrDecimal128Syntax}, {"nan1", ErrDecimal128Syntax}, {"--1", ErrDecimal128Syntax},
		{"12345678901234567890123456789012345", ErrDecimal128Inexact},
		{"1" + zeros(40) + "1", ErrDecimal128Inexact},
		{"1E6145", ErrDecimal128Range}, {"1E999999999999999999999", ErrDecimal128Range},
		{"1E-6177", ErrDecimal128Range}, {"15E-6177", ErrDecimal128Range}, {"1E-999999999999999999999", ErrDecimal128Range},
	}
	for _, tt := range failures {
		if d, err := ParseDecimal128(tt.in); !errors.Is(err, tt.err) {
			t.Errorf("ParseDecimal128(%q) = %s, %v, want the error %q", tt.in, d, err, tt.err)
		}
	}
}

func zeros(n int) string { return fmt.Sprintf("%0*d", n, 0) }

func TestDecimal128BigInt(t *testing.T) {
	for _, s := range []string{"0", "1", "-1", "123.456", "-9999999999999999999999999999999999E+6111", "1E-6176", "18446744073709551616"} {
		d, err := ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		coefficient, exponent, err := d.BigInt()
		if err != nil {
			t.Fatal(err)
		}
		again, err := NewDecimal128FromBigInt(coefficient, exponent)
		if err != nil || again != d {
			t.Errorf("%s is %s * 10^%d and back %s, %v", d, coefficient, exponent, again, err)
		}
	}
	for _, s := range []string{"NaN", "Inf", "-Inf"} {
		d, _ := ParseDecimal128(s)
		if _, _, err := d.BigInt(); err == nil {
			t.Errorf("%s has a coefficient", s)
		}
	}
	digits35, _ := new(big.Int).SetString("12345678901234567890123456789012345", 10)
	for _, tt := range []struct {
		coefficient *big.Int
		exponent    int
		err         error
	}{
		{digits35, 0, ErrDecimal128Inexact},
		{big.NewInt(1), 6145, ErrDecimal128Range},
		{big.NewInt(1), math.MaxInt, ErrDecimal128Range},
		{big.NewInt(1), math.MinInt, ErrDecimal128Range},
		{new(big.Int).Lsh(big.NewInt(1), 1<<20), 0, ErrDecimal128Range},
	} {
		if d, err := NewDecimal128FromBigInt(tt.coefficient, tt.exponent); !errors.Is(err, tt.err) {
			t.Errorf("got %s, %v, want the error %q", d, err, tt.err)
		}
	}
}

func TestDecimal128Int64(t *testing.T) {
	for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		d := NewDecimal128FromInt64(n)
		if got, ok := d.Int64(); got != n || !ok {
			t.Errorf("%d becomes %s and back %d, %v", n, d, got, ok)
		}
	}
	for _, tt := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"1.00", 1, true}, {"-12E+3", -12000, true}, {"0E+6111", 0, true}, {"1.5", 0, false}, {"9223372036854775808", 0, false},
		{"-9223372036854775809", 0, false}, {"1E+6000", 0, false}, {"NaN", 0, false}, {"-Inf", 0, false}, {"2E+19", 0, false},
	} {
		d, _ := ParseDecimal128(tt.in)
		if got, ok := d.Int64(); got != tt.want || ok != tt.ok {
			t.Errorf("Int64 of %s = %d, %v, want %d, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestDecimal128Classes(t *testing.T) {
	for _, tt := range []struct {
		in       string
		sign     int
		nan, inf bool
		float    float64
	}{
		{"0", 0, false, false, 0}, {"-0.0", 0, false, false, 0}, {"NaN", 0, true, false, math.NaN()},
		{"Inf", 1, false, true, math.Inf(1)}, {"-Inf", -1, false, true, math.Inf(-1)}, {"-0.1", -1, false, false, -0.1},
		{"1E+400", 1, false, false, math.Inf(1)},
	} {
		d, err := ParseDecimal128(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if d.Sign() != tt.sign || d.IsNaN() != tt.nan || d.IsInf(0) != tt.inf || d.IsInf(tt.sign) != tt.inf {
			t.Errorf("%s: sign %d, NaN %v, infinite %v", d, d.Sign(), d.IsNaN(), d.IsInf(0))
		}
		if f := d.Float64(); f != tt.float && !(math.IsNaN(f) && math.IsNaN(tt.float)) {
			t.Errorf("Float64 of %s = %v, want %v", d, f, tt.float)
		}
	}
}

// TestDecimal128NotCanonical: a coefficient of more than 34 digits counts as zero.
func TestDecimal128NotCanonical(t *testing.T) {
	for _, d := range []Decimal128{
		NewDecimal128(0x3040000000000000|1<<49-1, 1<<64-1),
		NewDecimal128(0x6C10000000000000, 5),
	} {
		if d.Sign() != 0 || d.String() != "0" {
			t.Errorf("%x: sign %d, text %s, want a zero", d, d.Sign(), d)
		}
	}
}
