package expr

// $dateToString and $dateFromString.

import (
	"fmt"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	registerNamed(
		&namedOp{
			name:      "$dateToString",
			late:      true,
			notObject: parseError{18629, "$dateToString only supports an object as its argument", 0},
			unknown:   parseError{18534, "Unrecognized argument to $dateToString: %s", 1},
			params: []parameter{{"date", &parseError{18628, "Missing 'date' parameter to $dateToString", 0}},
				{"format", nil}, {"timezone", nil}, {"onNull", nil}},
			eval: evalDateToString,
		},
		&namedOp{
			name:      "$dateFromString",
			late:      true,
			notObject: parseError{40540, "$dateFromString only supports an object as an argument, found: %s", 1},
			unknown:   parseError{40541, "Unrecognized argument to $dateFromString: %s", 1},
			params: []parameter{{"dateString",
				&parseError{40542, "Missing 'dateString' parameter to $dateFromString", 0}},
				{"format", nil}, {"timezone", nil}, {"onNull", nil}, {"onError", nil}},
			eval: evalDateFromString,
		},
	)
}

const isoFormat = "%Y-%m-%dT%H:%M:%S.%LZ"

// checkFormat checks a format's conversion characters.
func checkFormat(format, allowed string) error {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if i++; i == len(format) {
			return &srverr.Error{Code: 18535, Msg: "Unmatched '%' at end of format string"}
		}
		if !strings.ContainsRune(allowed, rune(format[i])) {
			return srverr.New(18536, "Invalid format character '%%%c' in format string", format[i])
		}
	}
	return nil
}

func toStringChars(v Version) string {
	if v.AtLeast(7, 1) {
		return "%dGHjLmMSuUVwYzZbB"
	}
	return "%dGHjLmMSuUVwYzZ"
}

func fromStringChars(v Version) string {
	if v.AtLeast(7, 1) {
		return "%dGHLmMSuVYzZbBj"
	}
	return "%dGHLmMSuVYzZ"
}

// formatAndZone evaluates the arguments format and timezone. code is that of the error for a format
// that is no string, chars are the characters that it may have. ok is false if the zone is null.
func formatAndZone(st *State, n *named, code int32, chars string) (format bson.RawValue, z zone, ok bool, err error) {
	if n.has(1) {
		if format, err = n.arg(st, 1); err != nil {
			return format, z, false, err
		}
		if !nullish(format) {
			if !isString(format) {
				return format, z, false, srverr.New(code,
					"%s requires that 'format' be a string, found: %s with value %s", n.op.name, typeName(format),
					Text(format))
			}
			if err := checkFormat(text(format), chars); err != nil {
				return format, z, false, err
			}
		}
	}
	z, ok, err = zoneArg(st, n.args[2])
	return format, z, ok, err
}

func evalDateToString(st *State, n *named) (bson.RawValue, error) {
	date, err := n.arg(st, 0)
	if err != nil {
		return missing, err
	}
	format, z, ok, err := formatAndZone(st, n, 18533, toStringChars(st.env.Version))
	if err != nil {
		return missing, err
	}
	if nullish(date) {
		if n.has(3) {
			return n.arg(st, 3)
		}
		return null, nil
	}
	if !ok || n.has(1) && nullish(format) {
		return null, nil
	}
	pattern := isoFormat
	switch {
	case n.has(1):
		pattern = text(format)
	case !z.isUTC() && st.env.Version.AtLeast(5, 0):
		pattern = strings.TrimSuffix(isoFormat, "Z")
	}
	ms, err := coerceToDate(date)
	if err != nil {
		return missing, err
	}
	s, err := formatDate(pattern, ms, z)
	return bsondoc.StringValue(s), err
}

var monthNames = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September",
	"October", "November", "December"}

func formatDate(format string, ms int64, z zone) (string, error) {
	c := dateOf(z.local(ms))
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch format[i] {
		case '%':
			b.WriteByte('%')
		case 'd':
			fmt.Fprintf(&b, "%02d", c.day)
		case 'm':
			fmt.Fprintf(&b, "%02d", c.month)
		case 'b':
			b.WriteString(monthNames[c.month-1][:3])
		case 'B':
			b.WriteString(monthNames[c.month-1])
		case 'Y', 'G':
			year := c.year
			if format[i] == 'G' {
				year, _ = c.isoWeek()
			}
			if year < 0 || year > 9999 {
				return "", srverr.New(
					18537, "Could not convert date to string: date component was outside the supported range of 0-9999: %d", year)
			}
			fmt.Fprintf(&b, "%04d", year)
		case 'H':
			fmt.Fprintf(&b, "%02d", c.hour)
		case 'M':
			fmt.Fprintf(&b, "%02d", c.minute)
		case 'S':
			fmt.Fprintf(&b, "%02d", c.second)
		case 'L':
			fmt.Fprintf(&b, "%03d", c.millis)
		case 'j':
			fmt.Fprintf(&b, "%03d", c.yearDay())
		case 'u':
			fmt.Fprint(&b, c.isoWeekday())
		case 'w':
			fmt.Fprint(&b, c.weekday()+1)
		case 'U':
			fmt.Fprintf(&b, "%02d", c.week())
		case 'V':
			_, week := c.isoWeek()
			fmt.Fprintf(&b, "%02d", week)
		case 'z', 'Z':
			offset := z.offsetAt(ms) / 60
			if format[i] == 'Z' {
				fmt.Fprint(&b, offset)
				break
			}
			sign := '+'
			if offset < 0 {
				sign, offset = '-', -offset
			}
			fmt.Fprintf(&b, "%c%02d%02d", sign, offset/60, offset%60)
		}
	}
	return b.String(), nil
}

func evalDateFromString(st *State, n *named) (bson.RawValue, error) {
	in, err := n.arg(st, 0)
	if err != nil {
		return missing, err
	}
	format, z, ok, err := formatAndZone(st, n, 40684, fromStringChars(st.env.Version))
	if err != nil {
		return missing, err
	}
	if nullish(in) {
		if n.has(3) {
			return n.arg(st, 3)
		}
		return null, nil
	}
	if z.isUTC() && st.env.Version.AllParsed() {
		z = utc // an offset in the text goes together with it
	}
	ms, err := int64(0), error(nil)
	switch {
	case !isString(in):
		err = srverr.New(srverr.ConversionFailure,
			"$dateFromString requires that 'dateString' be a string, found: %s with value %s", typeName(in), Text(in))
	case !ok || n.has(1) && nullish(format):
		return null, nil
	case n.has(1):
		ms, err = parseDateFormat(text(in), text(format), z)
	default:
		ms, err = parseDate(freeText(in, st.env.Version), z)
	}
	if err != nil {
		if n.has(4) && srverr.CodeOf(err) == srverr.ConversionFailure {
			return n.arg(st, 4)
		}
		return missing, err
	}
	return bsondoc.DateValue(ms), nil
}
