// Package optionsutil has the settings that only package xoptions sets.
package optionsutil

// Options are values by name. They are immutable and can be compared: With returns others.
type Options struct{ last *value }

type value struct {
	key    string
	value  any
	before *value
}

// With returns the options with one value more.
func With(o Options, key string, v any) Options {
	return Options{&value{key: key, value: v, before: o.last}}
}

// Value returns the value that was set last, nil if none was.
func Value(o Options, key string) any {
	for v := o.last; v != nil; v = v.before {
		if v.key == key {
			return v.value
		}
	}
	return nil
}
