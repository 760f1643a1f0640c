package expr

// $dateAdd, $dateSubtract, $dateDiff and $dateTrunc (server 5.0).

import (
	"math"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	for _, name := range []string{"$dateAdd", "$dateSubtract"} {
		incomplete := &parseError{5166402, "%s requires startDate, unit, and amount to be present", 3}
		registerNamed(&namedOp{
			name:      name,
			notObject: parseError{5166400, "%s expects an object as its argument.found type: %s", 2},
			unknown:   parseError{5166401, "Unrecognized argument to %s: %s. Expected arguments are startDate, unit, amount, and optionally timezone.", 2},
			params: []parameter{{"startDate", incomplete}, {"unit", incomplete}, {"amount", incomplete},
				{"timezone", nil}},
			eval: evalDateAdd,
		})
	}
	registerNamed(
		&namedOp{
			name:      "$dateDiff",
			notObject: parseError{5166301, "$dateDiff only supports an object as its argument", 0},
			unknown:   parseError{5166302, "Unrecognized argument to $dateDiff: %s", 1},
			params: []parameter{
				{"startDate", &parseError{5166303, "Missing 'startDate' parameter to $dateDiff", 0}},
				{"endDate", &parseError{5166304, "Missing 'endDate' parameter to $dateDiff", 0}},
				{"unit", &parseError{5166305, "Missing 'unit' parameter to $dateDiff", 0}},
				{"timezone", nil}, {"startOfWeek", nil},
			},
			eval: evalDateDiff,
		},
		&namedOp{
			name:      "$dateTrunc",
			notObject: parseError{5439007, "$dateTrunc only supports an object as its argument", 0},
			unknown:   parseError{5439008, "Unrecognized argument to $dateTrunc: %s", 1},
			params: []parameter{
				{"date", &parseError{5439009, "Missing 'date' parameter to $dateTrunc", 0}},
				{"unit", &parseError{5439010, "Missing 'unit' parameter to $dateTrunc", 0}},
				{"binSize", nil}, {"timezone", nil}, {"startOfWeek", nil},
			},
			eval: evalDateTrunc,
		},
	)
}

// timeUnit is a unit of months (year, quarter, month) or of milliseconds.
type timeUnit struct {
	name   string
	months int64
	millis int64
}

var timeUnits = []timeUnit{
	{"year", 12, 0}, {"quarter", 3, 0}, {"month", 1, 0}, {"week", 0, 7 * dayMillis}, {"day", 0, dayMillis},
	{"hour", 0, 3600000}, {"minute", 0, 60000}, {"second", 0, 1000}, {"millisecond", 0, 1},
}

// FindTimeUnit reports whether there is a time unit of this name.
func FindTimeUnit(name string) bool { _, ok := findUnit(name); return ok }

func findUnit(name string) (timeUnit, bool) {
	for _, u := range timeUnits {
		if u.name == name {
			return u, true
		}
	}
	return timeUnit{}, false
}

// wholeDays reports whether the unit counts days of the calendar, so that it follows a time zone's
// clock.
func (u timeUnit) wholeDays() bool { return u.months > 0 || u.millis >= dayMillis }

// AddToDate adds an amount of a time unit to a date, in UTC.
func AddToDate(ms int64, unit string, amount int64) (int64, bool) {
	u, _ := findUnit(unit)
	return u.add(ms, amount, utc)
}

// outOfCalendar reports whether an amount of months or years is more than the calendar takes.
func outOfCalendar(amount int64) bool { return amount > 1<<31 || amount < -(1<<31) }

// add adds an amount of the unit to a date; ok is false if the result is out of range.
func (u timeUnit) add(ms, amount int64, z zone) (out int64, ok bool) {
	limit := int64(math.MaxInt64)
	if u.months > 0 {
		if outOfCalendar(amount) {
			return 0, false
		}
		local := z.local(ms)
		c := dateOf(local)
		total := int64(c.year)*12 + int64(c.month-1) + amount*u.months
		year, month := floorDiv(total, 12), total-12*floorDiv(total, 12)+1
		if year < -290000000 || year > 290000000 {
			return 0, false
		}
		last := daysFromCivil(year, month+1, 1) - daysFromCivil(year, month, 1)
		day := min(int64(c.day), last)
		return z.toUTC(epochMillis(year, month, day, int64(c.hour), int64(c.minute), int64(c.second), int64(c.millis))),
			true
	}
	if amount > limit/u.millis || amount < -limit/u.millis {
		return 0, false
	}
	delta := amount * u.millis
	if sum := ms + delta; (sum > ms) != (delta > 0) && delta != 0 {
		return 0, false
	}
	if u.wholeDays() {
		return z.toUTC(z.local(ms) + delta), true
	}
	return ms + delta, true
}

func isDateLike(v bson.RawValue) bool {
	return v.Type == bson.TypeDateTime || v.Type == bson.TypeTimestamp || v.Type == bson.TypeObjectID
}

func evalDateAdd(st *State, n *named) (bson.RawValue, error) {
	name := n.op.name
	var args [3]bson.RawValue
	for i := range args {
		var err error
		if args[i], err = n.arg(st, i); err != nil {
			return missing, err
		}
	}
	start, unit, amount := args[0], args[1], args[2]
	if nullish(start) || nullish(unit) || nullish(amount) {
		return null, nil
	}
	z, ok, err := zoneArg(st, n.args[3])
	if err != nil || !ok {
		return null, err
	}
	if !isDateLike(start) {
		return missing, srverr.New(5166403, "%s requires startDate to be convertible to a date", name)
	}
	if !isString(unit) {
		return missing, srverr.New(st.code(5166404, 5439013), "%s expects string defining the time unit", name)
	}
	u, ok := findUnit(text(unit))
	if !ok {
		return missing, srverr.New(srverr.FailedToParse, "unknown time unit value: %s", text(unit))
	}
	if !integral64(amount) {
		return missing, srverr.New(5166405, "%s expects integer amount of time units", name)
	}
	ms, err := coerceToDate(start)
	if err != nil {
		return missing, err
	}
	count := toLong(amount)
	if name == "$dateSubtract" {
		if count == math.MinInt64 {
			return missing,
				srverr.New(6045000, "invalid %s 'amount' parameter value: %s %s", name, Text(amount), u.name)
		}
		count = -count
	}
	out, ok := u.add(ms, count, z)
	if !ok && u.months > 0 && outOfCalendar(count) && st.env.Version.AllParsed() {
		return missing, srverr.New(5976500, "invalid %s 'amount' parameter value: %s %s", name, Text(amount), u.name)
	}
	if !ok {
		return missing, srverr.New(5166406, "%s overflowed", name)
	}
	return bsondoc.DateValue(out), nil
}

// weekStart reads startOfWeek as a number of days from Monday.
func weekStart(name string, v bson.RawValue) (int64, error) {
	if v.Type == 0 {
		return 6, nil // Sunday
	}
	if !isString(v) {
		return 0, srverr.New(5439015, "%s requires 'startOfWeek' to be a string, but got %s", name, typeName(v))
	}
	s := strings.ToLower(text(v))
	for i, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
		if s == day || s == day[:3] {
			return int64(i), nil
		}
	}
	return 0, srverr.New(5439016, "%s parameter 'startOfWeek' value cannot be recognized as a day of a week: %s", name,
		text(v))
}

func (n *named) unit(st *State, v bson.RawValue) (timeUnit, error) {
	if !isString(v) {
		return timeUnit{}, srverr.New(5439013, "%s requires 'unit' to be a string, but got %s", n.op.name, typeName(v))
	}
	u, ok := findUnit(text(v))
	if !ok {
		return u, srverr.New(st.code(5439014, srverr.FailedToParse), "%s parameter 'unit' value cannot be recognized as a time unit: %s", n.op.name,
			text(v))
	}
	return u, nil
}

// index numbers the units from some origin on, so that a difference counts the boundaries between
// two dates.
func (u timeUnit) index(local, week int64) int64 {
	c := dateOf(local)
	switch {
	case u.months > 0:
		return floorDiv(int64(c.year)*12+int64(c.month-1), u.months)
	case u.name == "week":
		return floorDiv(floorDiv(local, dayMillis)+3-week, 7) // 1970-01-01 was a Thursday
	}
	return floorDiv(local, u.millis)
}

func evalDateDiff(st *State, n *named) (bson.RawValue, error) {
	var args [5]bson.RawValue
	for i := range args {
		var err error
		if args[i], err = n.arg(st, i); err != nil {
			return missing, err
		}
	}
	for i := range args[:3] {
		if nullish(args[i]) {
			return null, nil
		}
	}
	if n.has(4) && nullish(args[4]) {
		return null, nil
	}
	z, ok, err := zoneArg(st, n.args[3])
	if err != nil || !ok {
		return null, err
	}
	for i, name := range []string{"startDate", "endDate"} {
		if !isDateLike(args[i]) {
			return missing, srverr.New(5166307, "$dateDiff requires '%s' to be a date, but got %s", name,
				typeName(args[i]))
		}
	}
	u, err := n.unit(st, args[2])
	if err != nil {
		return missing, err
	}
	week := int64(6)
	if u.name == "week" {
		if week, err = weekStart("$dateDiff", args[4]); err != nil {
			return missing, err
		}
	}
	from, _ := coerceToDate(args[0])
	to, _ := coerceToDate(args[1])
	if !u.wholeDays() && u.name != "hour" {
		return bsondoc.Int64Value(u.index(to, week) - u.index(from, week)), nil
	}
	localFrom, localTo := z.local(from), z.local(to)
	if u.name == "hour" { // those that pass, whatever the clocks say
		localTo -= (localTo - to) - (localFrom - from)
	}
	return bsondoc.Int64Value(u.index(localTo, week) - u.index(localFrom, week)), nil
}

// constantUnit reports whether all of $dateTrunc is constant and its unit is no week: then the
// start of a week is not looked at. It is so since server 8.1.
func (n *named) constantUnit(unit bson.RawValue, v Version) bool {
	if !v.AllParsed() || text(unit) == "week" {
		return false
	}
	for _, e := range n.args {
		if _, ok := e.(*constant); e != nil && !ok {
			return false
		}
	}
	return true
}

func evalDateTrunc(st *State, n *named) (bson.RawValue, error) {
	var args [5]bson.RawValue
	for i := range args {
		var err error
		if args[i], err = n.arg(st, i); err != nil {
			return missing, err
		}
		if i == 4 && n.constantUnit(args[1], st.env.Version) {
			break
		}
		if nullish(args[i]) && n.has(i) {
			return null, nil
		}
	}
	z, ok, err := zoneArg(st, n.args[3])
	if err != nil || !ok {
		return null, err
	}
	if !isDateLike(args[0]) {
		return missing, srverr.New(st.code(5439012, 5166307), "$dateTrunc requires 'date' to be a date, but got %s", typeName(args[0]))
	}
	u, err := n.unit(st, args[1])
	if err != nil {
		return missing, err
	}
	bin := int64(1)
	if n.has(2) {
		if !integral64(args[2]) {
			return missing, srverr.New(
				5439017, "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '%s' of type %s",
				Text(args[2]), typeName(args[2]))
		}
		if bin = toLong(args[2]); bin <= 0 {
			return missing, srverr.New(5439018, "$dateTrunc requires 'binSize' to be greater than 0, but got value %d",
				bin)
		}
	}
	week := int64(6)
	if u.name == "week" {
		if week, err = weekStart("$dateTrunc", args[4]); err != nil {
			return missing, err
		}
	}
	ms, _ := coerceToDate(args[0])
	// Bins are counted from 2000-01-01, weeks from the first start of a week after it.
	origin := daysFromCivil(2000, 1, 1) * dayMillis
	local := z.local(ms)
	switch {
	case u.months > 0:
		if bin > 1<<31 {
			return missing, srverr.New(5439006, "$dateTrunc 'binSize' value is too large")
		}
		c := dateOf(local)
		size := bin * u.months
		month := floorDiv(int64(c.year-2000)*12+int64(c.month-1), size) * size
		return bsondoc.DateValue(z.toUTC(epochMillis(2000+floorDiv(month, 12), month-12*floorDiv(month, 12)+1, 1, 0, 0,
			0, 0))), nil
	case u.wholeDays():
		if bin > 1<<40/(u.millis/dayMillis) {
			return missing, srverr.New(5439006, "$dateTrunc 'binSize' value is too large")
		}
		if u.name == "week" {
			first := (week - 5 + 7) % 7 // 2000-01-01 was a Saturday
			origin += first * dayMillis
		}
		size := bin * u.millis
		return bsondoc.DateValue(z.toUTC(origin + floorDiv(local-origin, size)*size)), nil
	}
	if bin > math.MaxInt64/u.millis {
		return missing, srverr.New(st.code(5439006, 5439002), "$dateTrunc 'binSize' value is too large")
	}
	size := bin * u.millis
	start := z.toUTC(origin)
	return bsondoc.DateValue(start + floorDiv(ms-start, size)*size), nil
}
