package expr

// Date operators: the parts of a date, and dates from parts.

import (
	"encoding/binary"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	for name, part := range map[string]func(civil) int64{
		"$year":         func(c civil) int64 { return int64(c.year) },
		"$month":        func(c civil) int64 { return int64(c.month) },
		"$dayOfMonth":   func(c civil) int64 { return int64(c.day) },
		"$hour":         func(c civil) int64 { return int64(c.hour) },
		"$minute":       func(c civil) int64 { return int64(c.minute) },
		"$second":       func(c civil) int64 { return int64(c.second) },
		"$millisecond":  func(c civil) int64 { return int64(c.millis) },
		"$dayOfYear":    func(c civil) int64 { return int64(c.yearDay()) },
		"$dayOfWeek":    func(c civil) int64 { return int64(c.weekday() + 1) },
		"$week":         func(c civil) int64 { return int64(c.week()) },
		"$isoDayOfWeek": func(c civil) int64 { return int64(c.isoWeekday()) },
		"$isoWeek":      func(c civil) int64 { _, w := c.isoWeek(); return int64(w) },
		"$isoWeekYear":  func(c civil) int64 { y, _ := c.isoWeek(); return int64(y) },
	} {
		registerParser(name, func(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
			return parseDatePart(name, part, v, s, depth)
		}, shownDatePart)
	}
	registerNamed(
		&namedOp{
			name:      "$dateToParts",
			late:      true,
			notObject: parseError{40524, "$dateToParts only supports an object as its argument", 0},
			unknown:   parseError{40520, "Unrecognized argument to $dateToParts: %s", 1},
			params: []parameter{{"date", &parseError{40522, "Missing 'date' parameter to $dateToParts", 0}},
				{"timezone", nil}, {"iso8601", nil}},
			eval: evalDateToParts,
		},
	)
	registerNamed(dateFromPartsOp)
	for i, name := range []string{"$tsSecond", "$tsIncrement"} {
		registerNary(&naryOp{name: name, arity: exactly(1),
			eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
				if nullish(args[0]) {
					return null, nil
				}
				ts, ok := args[0].Timestamp()
				if !ok {
					return missing, srverr.New(int32(5687301+i), " Argument to %s must be a timestamp, but is %s", name,
						typeName(args[0])) // sic
				}
				if i == 0 {
					return bsondoc.Int64Value(int64(ts.T)), nil
				}
				return bsondoc.Int64Value(int64(ts.I)), nil
			}})
	}
}

// coerceToDate reads a date, timestamp or ObjectID as milliseconds since 1970.
func coerceToDate(v bson.RawValue) (int64, error) {
	switch v.Type {
	case bson.TypeDateTime:
		d, _ := v.DateTime()
		return int64(d), nil
	case bson.TypeTimestamp:
		ts, _ := v.Timestamp()
		return int64(ts.T) * 1000, nil
	case bson.TypeObjectID:
		id, _ := v.ObjectID()
		return int64(int32(binary.BigEndian.Uint32(id[:]))) * 1000, nil // the seconds are signed
	}
	return 0, srverr.New(16006, "can't convert from BSON type %s to Date", typeName(v))
}

// datePart is $year and its like.
type datePart struct {
	name       string
	part       func(civil) int64
	date, zone Expr
}

func parseDatePart(name string, part func(civil) int64, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	d := &datePart{name: name, part: part}
	var err error
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		if key, _, _ := firstElement(bson.Raw(v.Value)); strings.HasPrefix(key, "$") {
			break
		}
		for key, item := range bson.Raw(v.Value).All() {
			target := &d.date
			switch key {
			case "date":
			case "timezone":
				target = &d.zone
			default:
				return nil, srverr.New(40535, "unrecognized option to %s: \"%s\"", name, key)
			}
			if *target, err = parse(item, s, depth+1); err != nil {
				return nil, err
			}
		}
		if d.date == nil {
			return nil, srverr.New(40539, "missing 'date' argument to %s, provided: %s: %s", name, name,
				documentText(bson.Raw(v.Value)))
		}
		return d, nil
	case bson.TypeArray:
		all := bsondoc.Items(v)
		if len(all) != 1 {
			return nil, srverr.New(40536, "%s accepts exactly one argument if given an array, but was given %d", name,
				len(all))
		}
		v = all[0]
	}
	d.date, err = parse(v, s, depth+1)
	return d, err
}

func (d *datePart) eval(st *State) (bson.RawValue, error) {
	v, err := d.date.eval(st)
	if err != nil || nullish(v) {
		return null, err
	}
	ms, err := coerceToDate(v)
	if err != nil {
		return missing, err
	}
	z := utc
	if d.zone != nil {
		name, err := d.zone.eval(st)
		if err != nil || nullish(name) {
			return null, err
		}
		if !isString(name) {
			return missing, srverr.New(st.code(40533, 40517), "%s requires a string for the timezone argument, but was given a %s (%s)",
				d.name, typeName(name), Text(name))
		}
		if z, err = findZone(text(name)); err != nil {
			return missing, err
		}
	}
	n := d.part(dateOf(z.local(ms)))
	if d.name == "$isoWeekYear" {
		return bsondoc.Int64Value(n), nil
	}
	return bsondoc.Int32Value(int32(n)), nil
}

func (d *datePart) optimize(env *Env) (Expr, error) {
	args, all, err := optimizeAll([]Expr{d.date, d.zone}, env)
	if err != nil {
		return nil, err
	}
	return fold(&datePart{d.name, d.part, args[0], args[1]}, all, env)
}

func (d *datePart) children() []Expr { return []Expr{d.date, d.zone} }

// zoneArg evaluates a timezone operand; ok is false if it is null.
func zoneArg(st *State, e Expr) (z zone, ok bool, err error) {
	if e == nil {
		return utc, true, nil
	}
	v, err := e.eval(st)
	if err != nil || nullish(v) {
		return utc, false, err
	}
	if !isString(v) {
		return utc, false, srverr.New(40517, "timezone must evaluate to a string, found %s", typeName(v))
	}
	z, err = findZone(text(v))
	return z, true, err
}

func evalDateToParts(st *State, n *named) (bson.RawValue, error) {
	v, err := n.arg(st, 0)
	if err != nil {
		return missing, err
	}
	z, ok, err := zoneArg(st, n.args[1])
	if err != nil || !ok {
		return null, err
	}
	iso := false
	if n.has(2) {
		flag, err := n.arg(st, 2)
		if err != nil || nullish(flag) {
			return null, err
		}
		if iso, ok = flag.Boolean(); !ok {
			return missing, srverr.New(40521, "iso8601 must evaluate to a bool, found %s", typeName(flag))
		}
	}
	if nullish(v) {
		return null, nil
	}
	ms, err := coerceToDate(v)
	if err != nil {
		return missing, err
	}
	c := dateOf(z.local(ms))
	_, dst := bson.BeginDocument(nil)
	add := func(name string, n int) { dst = bson.AppendInt32(dst, name, int32(n)) }
	if iso {
		year, week := c.isoWeek()
		add("isoWeekYear", year)
		add("isoWeek", week)
		add("isoDayOfWeek", c.isoWeekday())
	} else {
		add("year", c.year)
		add("month", c.month)
		add("day", c.day)
	}
	add("hour", c.hour)
	add("minute", c.minute)
	add("second", c.second)
	add("millisecond", c.millis)
	return bsondoc.DocumentValue(bson.EndDocument(dst, 0)), nil
}

// The operands of $dateFromParts.
const (
	partYear = iota
	partMonth
	partDay
	partISOYear
	partISOWeek
	partISODay
	partHour
	partMinute
	partSecond
	partMillis
	partZone
)

var dateFromPartsOp = &namedOp{
	name:      "$dateFromParts",
	notObject: parseError{40519, "$dateFromParts only supports an object as its argument", 0},
	unknown:   parseError{40518, "Unrecognized argument to $dateFromParts: %s", 1},
	params: []parameter{{"year", nil}, {"month", nil}, {"day", nil}, {"isoWeekYear", nil}, {"isoWeek", nil},
		{"isoDayOfWeek", nil},
		{"hour", nil}, {"minute", nil}, {"second", nil}, {"millisecond", nil}, {"timezone", nil}},
	late:   true,
	verify: verifyDateParts,
	eval:   evalDateFromParts,
}

func verifyDateParts(given func(i int) bool) error {
	switch {
	case !given(partYear) && !given(partISOYear):
		return srverr.New(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
	case given(partYear) && (given(partISOYear) || given(partISOWeek) || given(partISODay)):
		return srverr.New(40489, "$dateFromParts does not allow mixing natural dates with ISO dates")
	case given(partISOYear) && (given(partMonth) || given(partDay)):
		return srverr.New(40525, "$dateFromParts does not allow mixing ISO dates with natural dates")
	}
	return nil
}

func evalDateFromParts(st *State, n *named) (bson.RawValue, error) {
	var parts [partZone]int64
	isNull := false
	read := func(i int, byDefault int64, bounded bool) error {
		parts[i] = byDefault
		if isNull || !n.has(i) {
			return nil
		}
		v, err := n.arg(st, i)
		if err != nil {
			return err
		}
		name := n.op.params[i].name
		switch {
		case nullish(v):
			isNull = true
			return nil
		case !integral64(v):
			return srverr.New(40515, "'%s' must evaluate to an integer, found %s with value %s", name, typeName(v),
				Text(v))
		}
		parts[i] = toLong(v)
		if bounded && (parts[i] < -32768 || parts[i] > 32767) {
			return srverr.New(
				31034, "'%s' must evaluate to a value in the range [-32768, 32767]; value %d is not in range", name,
				parts[i])
		}
		return nil
	}
	for _, p := range []struct {
		i       int
		bounded bool
	}{{partHour, true}, {partMinute, true}, {partSecond, false}, {partMillis, false}} {
		if err := read(p.i, 0, p.bounded); err != nil {
			return missing, err
		}
	}
	if isNull {
		return null, nil
	}
	z, ok, err := zoneArg(st, n.args[partZone])
	if err != nil || !ok {
		return null, err
	}
	first, second, third, rangeCode := partYear, partMonth, partDay, int32(40523)
	if n.has(partISOYear) {
		first, second, third, rangeCode = partISOYear, partISOWeek, partISODay, 31095
	}
	if err := read(first, 1970, false); err != nil {
		return missing, err
	}
	if err := read(second, 1, true); err != nil {
		return missing, err
	}
	if err := read(third, 1, true); err != nil {
		return missing, err
	}
	if isNull {
		return null, nil
	}
	if y := parts[first]; y < 1 || y > 9999 {
		return missing, srverr.New(rangeCode, "'%s' must evaluate to an integer in the range 1 to 9999, found %d",
			n.op.params[first].name, y)
	}
	var local int64
	if first == partYear {
		local = epochMillis(parts[partYear], parts[partMonth], parts[partDay], parts[partHour], parts[partMinute],
			parts[partSecond], parts[partMillis])
	} else {
		days := isoWeekDays(parts[partISOYear], parts[partISOWeek], parts[partISODay])
		local = days*dayMillis + parts[partHour]*3600000 + parts[partMinute]*60000 + parts[partSecond]*1000 +
			parts[partMillis]
	}
	return bsondoc.DateValue(z.toUTC(local)), nil
}

// isoWeekDays counts the days from 1970-01-01 to a day of an ISO week.
func isoWeekDays(year, week, day int64) int64 {
	jan4 := daysFromCivil(year, 1, 4)
	monday := jan4 - int64(dateOf(jan4*dayMillis).isoWeekday()) + 1
	return monday + (week-1)*7 + day - 1
}
