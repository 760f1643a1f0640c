package expr

// Reading dates: free text in the forms that the server's date library knows, and by a format.

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// parsedDate collects what was read; the have flags tell what.
type parsedDate struct {
	year, month, day             int64
	hour, minute, second, millis int64
	dayOfYear                    bool // day is counted from the beginning of the year
	isoDate                      bool // year is an ISO year, month a week, day a day of the week
	haveDate, haveTime, haveZone bool
	hadTime                      bool // before the part that is being read
	noYear, noDay                bool // the date lacks them
	noSeconds                    bool // the time is of four digits without a colon
	dayShift                     int64
	weekday                      int    // 1 is Sunday; 0: none was named
	zoneName                     string // how it was written, if not as an offset
	offset                       int    // seconds east
	epoch                        *int64
	errors                       []string
}

func (p *parsedDate) fail(pos int, s, message string) {
	c := "\x00" // the server shows the end of the text like that
	if pos < len(s) {
		c = s[pos : pos+1]
	}
	p.errors = append(p.errors, fmt.Sprintf("; %d: %s '%s'", pos, message, c))
}

// result turns what was read into milliseconds; z is the timezone operand.
func (p *parsedDate) result(s string, z zone) (int64, error) {
	if len(p.errors) > 0 {
		return 0, srverr.New(srverr.ConversionFailure, "Error parsing date string '%s'%s", s,
			strings.Join(p.errors, ""))
	}
	if p.epoch != nil {
		return *p.epoch, nil
	}
	if !p.haveDate || p.noYear || p.noDay {
		return 0, srverr.New(srverr.ConversionFailure,
			"an incomplete date/time string has been found, with elements missing: \"%s\"", s)
	}
	if p.haveZone && z != utc {
		if p.zoneName != "" {
			return 0, srverr.New(srverr.ConversionFailure,
				"you cannot pass in a date/time string with time zone information ('%s') together with a timezone argument", p.zoneName)
		}
		return 0, srverr.New(srverr.ConversionFailure,
			"you cannot pass in a date/time string with GMT offset together with a timezone argument")
	}
	var local int64
	if p.isoDate {
		local = isoWeekDays(p.year, p.month, p.day)*dayMillis + p.hour*3600000 + p.minute*60000 + p.second*1000 +
			p.millis
	} else {
		local = epochMillis(p.year, p.month, p.day, p.hour, p.minute, p.second, p.millis)
	}
	local += p.shift(local) * dayMillis
	if p.noSeconds {
		local -= 100 // the library leaves the microseconds at -99999, which marks them as unset
	}
	if p.haveZone {
		return local - int64(p.offset)*1000, nil
	}
	return z.toUTC(local), nil
}

// shift is how many days later than its date a text means: tomorrow, or the next day of a name.
func (p *parsedDate) shift(local int64) int64 {
	days := p.dayShift
	if p.weekday > 0 {
		today := (floorDiv(local, dayMillis) + days + 4) % 7 // 1970 began on a Thursday
		days += (int64(p.weekday-1) - today%7 + 14) % 7
	}
	return days
}

const (
	reHour   = `(2[0-4]|[01]?\d)`
	reMinute = `([0-5]?\d)`
	reDay    = `(3[01]|[0-2]?\d)`
	reMonth  = `(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`
	reSuffix = `(?:st|nd|rd|th)?`
	reZone   = `[ \t]*(z|utc|(?:gmt|utc)?[+-]\d{1,2}:?\d{0,2}|gmt)?`
)

// dateRule is a form that a part of a date may have. Of the rules that match at a place the longest
// match wins.
type dateRule struct {
	re    *regexp.Regexp
	apply func(p *parsedDate, m []string)
}

func rule(re string, apply func(p *parsedDate, m []string)) dateRule {
	return dateRule{regexp.MustCompile(`(?i)^(?:` + re + `)`), apply}
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// fullYear reads a year of two digits as one between 1970 and 2069.
func fullYear(s string) int64 {
	n := number(s)
	switch {
	case len(s) >= 4 || n >= 100:
		return n
	case n < 70:
		return n + 2000
	}
	return n + 1900
}

func monthNumber(s string) int64 {
	for i, name := range monthNames {
		if strings.EqualFold(s[:3], name[:3]) {
			return int64(i + 1)
		}
	}
	return 1
}

func (p *parsedDate) date(year, month, day int64) {
	p.year, p.month, p.day, p.haveDate = year, month, day, true
	p.noYear, p.noDay = false, false
}

// monthAndDay is a date whose year may come later.
func (p *parsedDate) monthAndDay(month, day int64) {
	p.month, p.day, p.haveDate, p.noYear = month, day, true, true
}

// midnight forgets the time.
func (p *parsedDate) midnight() {
	p.hour, p.minute, p.second, p.millis = 0, 0, 0, 0
	p.hadTime, p.noSeconds = false, false
}

func (p *parsedDate) clock(hour, minute, second, fraction string) {
	p.hour, p.minute, p.second, p.haveTime = number(hour), number(minute), number(second), true
	p.millis = number((fraction + "000")[:3])
}

// halfDay turns an hour of the 12-hour clock into one of 24.
func (p *parsedDate) halfDay(half string) {
	p.hour %= 12
	if strings.EqualFold(half, "p") {
		p.hour += 12
	}
}

// setZone reads Z, UTC, GMT+1, +01:00 and the like.
func (p *parsedDate) setZone(s string) {
	if s == "" {
		return
	}
	p.haveZone = true
	i := strings.IndexAny(s, "+-")
	if i < 0 {
		p.zoneName = strings.ToUpper(s)
		p.offset = 0
		return
	}
	p.offset = offsetSeconds(s[i:])
}

// offsetSeconds reads +1, +01, +0130, +130, +01:30.
func offsetSeconds(s string) int {
	digits := strings.Replace(s[1:], ":", "", 1)
	n := int(number(digits))
	if len(digits) <= 2 {
		n *= 100
	}
	seconds := n/100*3600 + n%100*60
	if s[0] == '-' {
		return -seconds
	}
	return seconds
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

var dateRules = []dateRule{
	rule(`t?`+reHour+`[:.]`+reMinute+`(?:[:.](60|[0-5]?\d)(?:\.(\d+))?)?`+reZone, func(p *parsedDate, m []string) {
		p.clock(m[1], m[2], m[3], m[4])
		p.setZone(m[5])
	}),
	rule(`(1[0-2]|0?[1-9])(?:[:.]([0-5]?\d)(?:[:.]([0-5]?\d))?)?[ \t]*([ap])\.?m\.?(?:[ \t]|$)`,
		func(p *parsedDate, m []string) {
			p.clock(m[1], m[2], m[3], "")
			p.halfDay(m[4])
		}),
	rule(`(1[0-2]|0?[1-9]):([0-5]\d):([0-5]\d)[:.](\d+)([ap])\.?m\.?(?:[ \t]|$)`, func(p *parsedDate, m []string) {
		p.clock(m[1], m[2], m[3], m[4])
		p.halfDay(m[5])
	}),
	// Four digits are a time of day, or after one a year.
	rule(`t?([01]\d|2[0-4])([0-5]\d)`, func(p *parsedDate, m []string) {
		if p.hadTime {
			p.year, p.noYear = number(m[1]+m[2]), false
			return
		}
		p.clock(m[1], m[2], "", "")
		p.noSeconds = true
	}),
	rule(`t?([01]\d|2[0-4])([0-5]\d)(60|[0-5]\d)`, func(p *parsedDate, m []string) { p.clock(m[1], m[2], m[3], "") }),
	rule(`(\d{4})`, func(p *parsedDate, m []string) { p.year, p.noYear = number(m[1]), false }),
	rule(`([+-]?\d{4})-(1[0-2]|0\d)-(3[01]|[0-2]\d)`, func(p *parsedDate, m []string) {
		p.date(number(m[1]), number(m[2]), number(m[3]))
	}),
	rule(`(\d{1,4})-(1[0-2]|0?\d)-`+reDay+reSuffix, func(p *parsedDate, m []string) {
		p.date(fullYear(m[1]), number(m[2]), number(m[3]))
	}),
	rule(`(\d{4})/(1[0-2]|0?\d)/`+reDay+reSuffix+`/?`, func(p *parsedDate, m []string) {
		p.date(number(m[1]), number(m[2]), number(m[3]))
	}),
	rule(`(\d{4})-(1[0-2]|0?\d)`, func(p *parsedDate, m []string) { p.date(number(m[1]), number(m[2]), 1) }),
	rule(`(1[0-2]|0?\d)/`+reDay+reSuffix+`/(\d{1,4})`, func(p *parsedDate, m []string) {
		p.date(fullYear(m[3]), number(m[1]), number(m[2]))
	}),
	rule(`(1[0-2]|0?\d)/`+reDay+reSuffix, func(p *parsedDate, m []string) {
		p.monthAndDay(number(m[1]), number(m[2]))
	}),
	rule(reDay+reSuffix+`[.\t-](1[0-2]|0?\d)[.-](\d{4})`, func(p *parsedDate, m []string) {
		p.date(number(m[3]), number(m[2]), number(m[1]))
	}),
	rule(reDay+reSuffix+`[.\t](1[0-2]|0?\d)\.(\d{2})`, func(p *parsedDate, m []string) {
		p.date(fullYear(m[3]), number(m[2]), number(m[1]))
	}),
	rule(`(\d{4})(0\d|1[0-2])([0-2]\d|3[01])`, func(p *parsedDate, m []string) {
		p.date(number(m[1]), number(m[2]), number(m[3]))
	}),
	rule(`(\d{4})(0\d|1[0-2])([0-2]\d|3[01])t?([01]\d|2[0-4]):?([0-5]\d):?([0-5]\d)(?:[.,](\d+))?`+reZone,
		func(p *parsedDate, m []string) {
			p.date(number(m[1]), number(m[2]), number(m[3]))
			p.clock(m[4], m[5], m[6], m[7])
			p.setZone(m[8])
		}),
	rule(`(\d{4}):(0\d|1[0-2]):([0-2]\d|3[01]) ([01]\d|2[0-4]):([0-5]\d):([0-5]\d)`, func(p *parsedDate, m []string) {
		p.date(number(m[1]), number(m[2]), number(m[3]))
		p.clock(m[4], m[5], m[6], "")
	}),
	rule(`(\d{4})-?W(0[1-9]|[1-4]\d|5[0-3])(?:-?([0-7]))?`, func(p *parsedDate, m []string) {
		day := int64(1)
		if m[3] != "" {
			day = number(m[3])
		}
		p.date(number(m[1]), number(m[2]), day)
		p.isoDate = true
	}),
	rule(`(\d{4})\.?(00[1-9]|0[1-9]\d|[12]\d\d|3[0-5]\d|36[0-6])`, func(p *parsedDate, m []string) {
		p.date(number(m[1]), 1, number(m[2]))
		p.dayOfYear = true
	}),
	rule(`(now|today|midnight|noon|yesterday|tomorrow)\b`, func(p *parsedDate, m []string) {
		switch strings.ToLower(m[1]) {
		case "now":
			return
		case "yesterday":
			p.dayShift = -1
		case "tomorrow":
			p.dayShift = 1
		}
		p.midnight()
		if strings.EqualFold(m[1], "noon") {
			p.clock("12", "", "", "")
		}
	}),
	rule(reDay+reSuffix+`[ \t.-]*`+reMonth+`[ \t.-]*(\d{1,4})`, func(p *parsedDate, m []string) {
		p.date(fullYear(m[3]), monthNumber(m[2]), number(m[1]))
	}),
	rule(reDay+reSuffix+`[ \t.-]*`+reMonth, func(p *parsedDate, m []string) {
		p.monthAndDay(monthNumber(m[2]), number(m[1]))
	}),
	rule(reMonth+`[ .\t-]*`+reDay+`[,.stndrh\t ]+(\d{1,4})`, func(p *parsedDate, m []string) {
		p.date(fullYear(m[3]), monthNumber(m[1]), number(m[2]))
	}),
	rule(reMonth+`[ .\t-]*`+reDay+`(?:[,.stndrh\t ]+|$)`, func(p *parsedDate, m []string) {
		p.monthAndDay(monthNumber(m[1]), number(m[2]))
	}),
	rule(reMonth+`[ .\t-]*`+reDay+`[,.stndrh\t ]+`+reHour+`[:.]`+reMinute+`(?:[:.](60|[0-5]?\d))?`+reZone,
		func(p *parsedDate, m []string) {
			p.monthAndDay(monthNumber(m[1]), number(m[2]))
			p.clock(m[3], m[4], m[5], "")
			p.setZone(m[6])
		}),
	rule(reMonth+`-(3[01]|[0-2]\d)-(\d{1,4})`, func(p *parsedDate, m []string) {
		p.date(fullYear(m[3]), monthNumber(m[1]), number(m[2]))
	}),
	rule(`(\d{1,4})-`+reMonth+`-(3[01]|[0-2]\d)`, func(p *parsedDate, m []string) {
		p.date(fullYear(m[1]), monthNumber(m[2]), number(m[3]))
	}),
	rule(reMonth+`[ .\t-]*(\d{4})`, func(p *parsedDate, m []string) { p.date(number(m[2]), monthNumber(m[1]), 1) }),
	rule(`(\d{4})[ .\t-]*`+reMonth, func(p *parsedDate, m []string) { p.date(number(m[1]), monthNumber(m[2]), 1) }),
	rule(reMonth, func(p *parsedDate, m []string) {
		p.monthAndDay(monthNumber(m[1]), 1)
		p.noDay = true
	}),
	rule(reDay+`/`+reMonth+`/(\d{4}):([01]\d|2[0-4]):([0-5]\d):([0-5]\d)[ \t]+((?:gmt)?[+-]\d{1,2}:?\d{0,2})`,
		func(p *parsedDate, m []string) {
			p.date(number(m[3]), monthNumber(m[2]), number(m[1]))
			p.clock(m[4], m[5], m[6], "")
			p.setZone(m[7])
		}),
	rule(`@(-?\d+)`, func(p *parsedDate, m []string) { n := number(m[1]) * 1000; p.epoch = &n }),
	// A day's name moves the date to the next such day, and forgets the time before it.
	rule(`(mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)\.?`,
		func(p *parsedDate, m []string) {
			p.weekday = 1 + slices.Index(weekdays, strings.ToLower(m[1][:3]))
			p.midnight()
		}),
	rule(`(gmt|utc|z|(?:gmt|utc)?[+-]\d{1,2}:?\d{0,2})`, func(p *parsedDate, m []string) { p.setZone(m[1]) }),
	// Single letters are the zones of the military.
	rule(`([a-ik-z])(?:[^a-z]|$)`, func(p *parsedDate, m []string) { p.setNamedZone(m[1]) }),
	rule(`(e[sd]t|c[sd]t|m[sd]t|p[sd]t|cet|cest|bst|wet|west|eet|eest|msk|jst)(?:[^a-z]|$)`,
		func(p *parsedDate, m []string) { p.setNamedZone(m[1]) }),
}

// setNamedZone sets the zone of a letter or an abbreviation, and reports whether it is one.
func (p *parsedDate) setNamedZone(name string) bool {
	lower := strings.ToLower(name)
	hours, ok := abbreviations[lower]
	if len(lower) == 1 && lower != "j" {
		hours, ok = militaryOffset(lower[0]), true
	}
	if ok {
		p.haveZone, p.zoneName, p.offset = true, strings.ToUpper(name), hours*3600
	}
	return ok
}

// readZone reads the zone that text begins with, and returns how long it is, 0 if there is none.
func (p *parsedDate) readZone(s string) int {
	if m := zonePattern.FindString(s); m != "" {
		p.setZone(m)
		return len(m)
	}
	name := namePattern.FindString(s)
	if name == "" || !p.setNamedZone(name) {
		return 0
	}
	return len(name)
}

var abbreviations = map[string]int{
	"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
	"cet": 1, "cest": 2, "bst": 1, "wet": 0, "west": 1, "eet": 2, "eest": 3, "msk": 3, "jst": 9,
}

// militaryOffset returns the hours east of a lower-case letter.
func militaryOffset(c byte) int {
	switch {
	case c <= 'i':
		return int(c-'a') + 1
	case c <= 'm':
		return int(c - 'a') // without j
	case c <= 'y':
		return -(int(c-'n') + 1)
	}
	return 0
}

var wordRule = regexp.MustCompile(`^(?:[A-Z][a-z]+(?:[_/-][A-Za-z]+)+|[A-Za-z]{1,6})`)

// separators turns what the date library of newer servers takes for spaces into them.
var separators = strings.NewReplacer("\x00", " ", "\u00a0", " ")

// freeText returns a string as parseDate reads it.
func freeText(v bson.RawValue, version Version) string {
	if version.AllParsed() {
		return separators.Replace(text(v))
	}
	return text(v)
}

// parseDate reads free text.
func parseDate(s string, z zone) (int64, error) {
	p := &parsedDate{}
	trimmed := strings.Trim(s, " \t\n\v\f\r")
	if trimmed == "" {
		p.fail(0, "", "Empty string")
		return p.result(s, z)
	}
	for pos := 0; pos < len(trimmed); {
		rest := trimmed[pos:]
		var best *dateRule
		var match []string
		for i := range dateRules {
			if m := dateRules[i].re.FindStringSubmatch(rest); m != nil && (match == nil || len(m[0]) > len(match[0])) {
				best, match = &dateRules[i], m
			}
		}
		word := wordRule.FindString(rest)
		switch {
		case best != nil && len(match[0]) >= len(word):
			hadDate, hadZone := p.haveDate, p.haveZone
			p.hadTime = p.haveTime
			p.haveDate, p.haveTime, p.haveZone = false, false, false
			best.apply(p, match)
			switch {
			case hadDate && p.haveDate:
				p.fail(pos, trimmed, "Double date specification")
			case p.hadTime && p.haveTime:
				p.fail(pos, trimmed, "Double time specification")
			case hadZone && p.haveZone:
				p.fail(pos, trimmed, "Double timezone specification")
			}
			p.haveDate, p.haveTime, p.haveZone = p.haveDate || hadDate, p.haveTime || p.hadTime, p.haveZone || hadZone
			if n := len(match[0]); n > 0 {
				pos += n
			} else {
				pos++
			}
		case strings.ContainsRune(" \t,.;tT", rune(rest[0])):
			pos++
		default:
			if word != "" {
				p.fail(pos, trimmed, "passing a time zone identifier as part of the string is not allowed")
				pos += len(word)
				continue
			}
			p.fail(pos, trimmed, "Unexpected character")
			pos++
		}
	}
	if len(p.errors) == 0 {
		p.checkRanges(len(trimmed)+1, trimmed)
	}
	return p.result(s, z)
}

// checkRanges refuses times and dates that there are not.
func (p *parsedDate) checkRanges(pos int, s string) {
	if p.hour > 23 || p.minute > 59 || p.second > 59 {
		p.fail(pos, s, "The parsed time was invalid")
	}
	if !p.haveDate || p.isoDate || p.dayOfYear || p.noYear {
		return
	}
	if p.month < 1 || p.month > 12 || p.day < 1 ||
		p.day > int64(time.Date(int(p.year), time.Month(p.month)+1, 0, 0, 0, 0, 0, time.UTC).Day()) {
		p.fail(pos, s, "The parsed date was invalid")
	}
}

// What %z and %Z take.
var (
	zonePattern    = regexp.MustCompile(`^(?i)(?:gmt|utc)?([+-]\d{1,2}:?\d{0,2})|^(?i)(gmt|utc|z)`)
	minutesPattern = regexp.MustCompile(`^[+-]?\d+`)
	namePattern    = regexp.MustCompile(`^[A-Za-z]+`)
)

// parseDateFormat reads a date by a format, whose conversion characters have been checked.
func parseDateFormat(s, format string, z zone) (int64, error) {
	p := &parsedDate{year: 1970, month: 1, day: 1}
	var have [256]bool
	pos := 0
	digits := func(maxLen int, message string) int64 {
		start := pos
		for pos < len(s) && pos-start < maxLen && s[pos] >= '0' && s[pos] <= '9' {
			pos++
		}
		if pos == start {
			p.fail(pos, s, message)
		}
		return number(s[start:pos])
	}
	i := 0
	for ; i < len(format) && len(p.errors) == 0; i++ {
		if pos >= len(s) {
			break
		}
		if format[i] != '%' {
			if s[pos] != format[i] {
				p.fail(pos, s, "The format separator does not match")
				break
			}
			pos++
			continue
		}
		i++
		c := format[i]
		have[c] = true
		switch c {
		case 'd':
			p.day = digits(2, "A two digit day could not be found")
		case 'm':
			p.month = digits(2, "A two digit month could not be found")
		case 'Y':
			p.year = digits(4, "A four digit year could not be found")
		case 'G':
			p.year = digits(4, "A four digit ISO year could not be found")
		case 'V':
			p.month = digits(2, "A two digit ISO week could not be found")
		case 'u':
			p.day = digits(1, "A single digit day of week could not be found")
		case 'H':
			p.hour = digits(2, "A two digit hour could not be found")
		case 'M':
			p.minute = digits(2, "A two digit minute could not be found")
		case 'S':
			p.second = digits(2, "A two digit second could not be found")
		case 'j':
			p.month, p.day = 1, 1+digits(3, "A three digit day-of-year could not be found") // the library counts from 0
		case 'L':
			start := pos
			digits(3, "A three digit millisecond could not be found")
			p.millis = number((s[start:pos] + "000")[:3])
		case 'b', 'B':
			p.readMonth(s, &pos)
		case 'z':
			pos += len(s[pos:]) - len(strings.TrimLeft(s[pos:], " \t"))
			n := p.readZone(s[pos:])
			if n == 0 {
				p.fail(pos, s, "The timezone could not be found in the database")
			}
			pos += n
		case 'Z':
			m := minutesPattern.FindString(s[pos:])
			if m == "" {
				p.fail(pos, s, "A UTC offset in minutes could not be found")
				break
			}
			if m[0] != '+' && m[0] != '-' {
				p.fail(pos, s, "Invalid timezone offset in minutes")
				p.fail(pos, s, "Trailing data")
				break
			}
			pos += len(m)
			p.haveZone, p.offset = true, int(number(m))*60
		case '%':
			if s[pos] != '%' {
				p.fail(pos, s, "The format separator does not match")
			}
			pos++
		}
	}
	if len(p.errors) == 0 {
		switch {
		case pos < len(s):
			p.fail(pos, s, "Trailing data")
		case s == "" && format != "":
			p.fail(0, s, "Data missing")
		case i < len(format):
			p.fail(pos, s, "Not enough data available to satisfy format")
		}
	}
	p.isoDate = have['G'] || have['V'] || have['u']
	if p.isoDate {
		p.haveDate = have['G']
	} else {
		p.haveDate = have['Y'] && (have['m'] || have['b'] || have['B']) && have['d'] || have['Y'] && have['j']
	}
	if natural := have['d'] || have['m'] || have['Y'] || have['j'] || have['b'] ||
		have['B']; p.isoDate && natural && len(p.errors) == 0 {
		for range 2 { // the library says it for the year and for the rest
			p.fail(len(s), s, "Mixing of ISO dates with natural dates is not allowed")
		}
	}
	if p.dayOfYear = have['j']; len(p.errors) == 0 {
		p.checkRanges(pos, s)
	}
	return p.result(s, z)
}

func (p *parsedDate) readMonth(s string, pos *int) {
	rest := strings.ToLower(s[*pos:])
	for i, name := range monthNames {
		name = strings.ToLower(name)
		for _, form := range []string{name, name[:3]} {
			if strings.HasPrefix(rest, form) {
				p.month = int64(i + 1)
				*pos += len(form)
				return
			}
		}
	}
	p.fail(*pos, s, "A textual month could not be found")
}
