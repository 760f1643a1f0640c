package query

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/release"
)

// Servers of version 5.0 have a definition of collation specifications, which reads them as it does
// arguments.

// collationSpec is what a specification says.
type collationSpec struct {
	Collation
	level     int64 // the strength
	alternate string
	version   string
}

// collationArgs is the definition. The command create has it within its own.
var collationArgs, createCollationArgs = defineCollation("collation"), defineCollation("create.collation")

// defineCollation returns the definition for documents that errors call by name.
func defineCollation(name string) *args.Table[collationSpec] {
	oneOf := func(to func(*collationSpec) *string, values ...string) args.Field[collationSpec] {
		return args.String(to).Then(func(q *collationSpec, v args.Value) error {
			if s := *to(q); !slices.Contains(values, s) {
				return badValue("Enumeration value '%s' for field '%s.%s' is not a valid value.", s, name, v.Name)
			}
			return nil
		})
	}
	fields := map[string]args.Field[collationSpec]{
		"locale":          args.String(func(q *collationSpec) *string { return &q.locale }),
		"caseLevel":       args.Bool(func(q *collationSpec) *bool { return &q.caseLevel }),
		"caseFirst":       oneOf(func(q *collationSpec) *string { return &q.caseFirst }, "upper", "lower", "off"),
		"strength":        args.Number(func(q *collationSpec) *int64 { return &q.level }).AtLeast(1).AtMost(5),
		"numericOrdering": args.Bool(func(q *collationSpec) *bool { return &q.numericOrdering }),
		"alternate":       oneOf(func(q *collationSpec) *string { return &q.alternate }, "non-ignorable", "shifted"),
		"maxVariable":     oneOf(func(q *collationSpec) *string { return &q.maxVariable }, "punct", "space"),
		"normalization":   args.Bool(func(q *collationSpec) *bool { return &q.normalization }),
		"backwards":       args.Bool(func(q *collationSpec) *bool { return &q.backwards }).Must(),
		"version":         args.String(func(q *collationSpec) *string { return &q.version }),
	}
	return &args.Table[collationSpec]{Name: name, Required: []string{"locale"}, Fields: fields}
}

// CheckCreateCollation checks the collation of a create command as its definition does.
func CheckCreateCollation(v args.Value) error {
	if !v.From.Version().AtLeast(5, 0) {
		return nil
	}
	return createCollationArgs.Parse(v.From, v.Value, &collationSpec{})
}

// parseDefined is ParseCollation by the definition. What stands beside {locale: "simple"} says
// nothing.
func parseDefined(version release.Version, spec bson.Raw) (*Collation, error) {
	locale, _ := spec.Lookup("locale").StringValue()
	byDefault := localeDefaults[locale]
	q := collationSpec{level: 3, alternate: byDefault.alternate, version: collatorVersion,
		Collation: Collation{caseFirst: "off", maxVariable: "punct", normalization: byDefault.normalization,
			backwards: byDefault.backwards}}
	if err := collationArgs.Parse(args.NoCommand{As: version}, spec, &q); err != nil || locale == "simple" {
		return nil, err
	}
	if err := checkLocale(locale, spec); err != nil {
		return nil, err
	}
	if err := checkCollatorVersion(q.version, spec); err != nil {
		return nil, err
	}
	c := &q.Collation
	c.strength, c.shifted = int(q.level), q.alternate == "shifted"
	return c.ready()
}
