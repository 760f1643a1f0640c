package expr

import (
	"time"
)

// Year is the year of a time, in UTC.
func Year[D any, T Instant](v Value[D, T]) Value[D, int32] { return one[D, int32]("$year", v.raw) }

// Month is the month of a time, from 1 to 12, in UTC.
func Month[D any, T Instant](v Value[D, T]) Value[D, int32] { return one[D, int32]("$month", v.raw) }

// DayOfMonth is the day of a time in its month, in UTC.
func DayOfMonth[D any, T Instant](v Value[D, T]) Value[D, int32] {
	return one[D, int32]("$dayOfMonth", v.raw)
}

// Hour is the hour of a time, in UTC.
func Hour[D any, T Instant](v Value[D, T]) Value[D, int32] { return one[D, int32]("$hour", v.raw) }

// Unit is a unit of time.
type Unit string

// The units of time.
const (
	UnitYear        Unit = "year"
	UnitQuarter     Unit = "quarter"
	UnitMonth       Unit = "month"
	UnitWeek        Unit = "week"
	UnitDay         Unit = "day"
	UnitHour        Unit = "hour"
	UnitMinute      Unit = "minute"
	UnitSecond      Unit = "second"
	UnitMillisecond Unit = "millisecond"
)

// DateTrunc is a time cut to the unit, in a time zone such as "Europe/Berlin", "" for UTC (server
// 5.0 and later).
func DateTrunc[D any, T Instant](v Value[D, T], unit Unit, zone string) Value[D, time.Time] {
	return named[D, time.Time]("$dateTrunc", arg("date", v.raw), arg("unit", unit), arg("timezone", unlessEmpty(zone)))
}

// DateAdd is a time so many units later, or earlier if n is negative (server 5.0 and later).
func DateAdd[D any, T Instant](v Value[D, T], n int64, unit Unit) Value[D, time.Time] {
	return named[D, time.Time]("$dateAdd", arg("startDate", v.raw), arg("unit", unit), arg("amount", n))
}

// DateDiff is how many boundaries of the unit lie between two times (server 5.0 and later).
func DateDiff[D any, T Instant](from, to Value[D, T], unit Unit) Value[D, int64] {
	return named[D, int64]("$dateDiff", arg("startDate", from.raw), arg("endDate", to.raw), arg("unit", unit))
}

// DateToString is a time as a string in a format such as "%Y-%m-%d", in a time zone, "" for UTC.
func DateToString[D any, T Instant](v Value[D, T], format, zone string) Value[D, string] {
	return named[D, string]("$dateToString", arg("date", v.raw), arg("format", format),
		arg("timezone", unlessEmpty(zone)))
}

func unlessEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}
