package expr

// The calendar: dates as fields, in UTC or in a time zone.

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the server brings its own time zones, too

	"allium/mongotest/internal/srverr"
)

// civil is a date and time of day, proleptic Gregorian.
type civil struct {
	year, month, day             int
	hour, minute, second, millis int
}

const dayMillis = 24 * 60 * 60 * 1000

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// daysFromCivil counts the days from 1970-01-01; the month may be any number.
func daysFromCivil(year, month, day int64) int64 {
	m := month - 1
	year += floorDiv(m, 12)
	m -= 12 * floorDiv(m, 12)
	if m < 2 {
		year--
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	doy := (153*((m+10)%12)+2)/5 + day - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// dateOf splits milliseconds since 1970 into fields.
func dateOf(ms int64) civil {
	days := floorDiv(ms, dayMillis)
	rest := ms - days*dayMillis
	c := dayOf(days)
	c.hour, c.minute = int(rest/3600000), int(rest/60000%60)
	c.second, c.millis = int(rest/1000%60), int(rest%1000)
	return c
}

// dayOf splits days since 1970 into fields.
func dayOf(days int64) civil {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	c := civil{day: int(doy - (153*mp+2)/5 + 1), month: int(mp + 3), year: int(yoe + era*400)}
	if c.month > 12 {
		c.month -= 12
		c.year++
	}
	return c
}

// epochMillis is the inverse of dateOf; every field may be out of its range.
func epochMillis(year, month, day, hour, minute, second, millis int64) int64 {
	return daysFromCivil(year, month, 1)*dayMillis + (day-1)*dayMillis + hour*3600000 + minute*60000 + second*1000 +
		millis
}

func (c civil) days() int64 { return daysFromCivil(int64(c.year), int64(c.month), int64(c.day)) }

// weekday is 0 on Sunday.
func (c civil) weekday() int { return int(((c.days()+4)%7 + 7) % 7) }

// isoWeekday is 1 on Monday and 7 on Sunday.
func (c civil) isoWeekday() int { return (c.weekday()+6)%7 + 1 }

func (c civil) yearDay() int { return int(c.days()-daysFromCivil(int64(c.year), 1, 1)) + 1 }

// week counts from 0, weeks begin on Sundays.
func (c civil) week() int { return (c.yearDay() + 6 - c.weekday()) / 7 }

// isoWeek returns the ISO 8601 year and week.
func (c civil) isoWeek() (year, week int) {
	thursday := c.days() - int64(c.isoWeekday()) + 4
	t := dayOf(thursday)
	return t.year, (t.yearDay()-1)/7 + 1
}

// isoDate renders a date as 2006-01-02T15:04:05.000Z.
func isoDate(ms int64) string {
	c := dateOf(ms)
	return fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", c.year, c.month, c.day, c.hour, c.minute, c.second,
		c.millis)
}

// zone is a time zone: a name of the Olson database, or a fixed offset.
type zone struct {
	loc    *time.Location // nil: fixed
	offset int            // seconds east of Greenwich
}

var utc = zone{}

// isUTC reports whether the zone is none, or UTC by name.
func (z zone) isUTC() bool { return z == utc || z == zone{loc: time.UTC} }

// offsetAt returns the seconds east of Greenwich at an instant.
func (z zone) offsetAt(ms int64) int {
	if z.loc == nil {
		return z.offset
	}
	_, off := time.UnixMilli(ms).In(z.loc).Zone()
	return off
}

// local shifts an instant so that dateOf shows the zone's clock.
func (z zone) local(ms int64) int64 { return ms + int64(z.offsetAt(ms))*1000 }

// toUTC is the inverse of local: an hour that exists twice is the earlier one, one that does not
// exist moves on.
func (z zone) toUTC(local int64) int64 {
	if z.loc == nil {
		return local - int64(z.offset)*1000
	}
	before := z.offsetAt(local - dayMillis)
	after := z.offsetAt(local + dayMillis)
	for _, off := range []int{before, after} {
		if ms := local - int64(off)*1000; z.offsetAt(ms) == off {
			return ms
		}
	}
	return local - int64(before)*1000
}

var zones sync.Map // name -> zone

// findZone looks a time zone up: UTC, GMT, an Olson name, or an offset such as +05:30, +0530, -03.
func findZone(name string) (zone, error) {
	if z, ok := zones.Load(name); ok {
		return z.(zone), nil
	}
	z, ok := parseZone(name)
	if !ok {
		return utc, srverr.New(40485, "unrecognized time zone identifier: \"%s\"", name)
	}
	if z.loc != nil { // a bounded number of names exists
		zones.Store(name, z)
	}
	return z, nil
}

func parseZone(name string) (zone, bool) {
	switch name {
	case "UTC", "GMT":
		return zone{loc: time.UTC}, true // by name, which is not the same as no zone
	case "", "Local", "Z":
		return utc, false
	}
	if name[0] == '+' || name[0] == '-' {
		digits := name[1:]
		if len(digits) == 5 && digits[2] == ':' {
			digits = digits[:2] + digits[3:]
		}
		if len(digits) != 2 && len(digits) != 4 {
			return utc, false
		}
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return utc, false
		}
		if len(digits) == 2 {
			n *= 100
		}
		seconds := int(n/100)*3600 + int(n%100)*60
		if name[0] == '-' {
			seconds = -seconds
		}
		return zone{offset: seconds}, true
	}
	if strings.ContainsAny(name, "\\") || strings.Contains(name, "..") {
		return utc, false
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return utc, false
	}
	return zone{loc: loc}, true
}
