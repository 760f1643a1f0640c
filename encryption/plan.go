package encryption

import (
	"fmt"

	"allium/bson"
	"allium/internal/fle/analysis"
)

// PlannedEncryption says that a value of a command would be encrypted, and how. It does
// not hold the value.
type PlannedEncryption struct {
	Namespace  string // of the collection whose schema says so
	Place      string // in the command, as "documents.0" or "filter"
	Path       string // of the field
	Operator   string // that compares the value, empty for one that is stored
	Algorithm  Algorithm
	Type       bson.Type // of the value
	KeyID      bson.UUID // unless there is a KeyAltName
	KeyAltName string

	text string
}

// String describes it in one line.
func (p PlannedEncryption) String() string { return p.text }

// DryRun reports which values of a command to the database db would be encrypted with these
// options, in the order of the command. It asks neither servers nor key services: every collection
// of the command must be in Schemas or EncryptedFields. A command that Auto would refuse is a
// *RefusedError.
func (o AutoOptions) DryRun(db string, command any) ([]PlannedEncryption, error) {
	out, err := o.dryRun(db, command)
	if err != nil {
		return nil, fmt.Errorf("dry run: %w", refused(err))
	}
	return out, nil
}

func (o *AutoOptions) dryRun(db string, command any) ([]PlannedEncryption, error) {
	cmd, err := bson.Marshal(command)
	if err != nil {
		return nil, err
	}
	if o.BypassEncryption || o.BypassQueryAnalysis {
		return nil, nil
	}
	known, err := configured(o.Schemas, o.EncryptedFields)
	if err != nil {
		return nil, err
	}
	namespaces, err := analysis.Namespaces(db, cmd)
	if err != nil || len(namespaces) == 0 {
		return nil, err
	}
	trees := make(map[string]*analysis.Schema, len(namespaces))
	names := make(map[bson.UUID]string)
	for _, ns := range namespaces {
		s := known[ns]
		switch {
		case s == nil:
			return nil, fmt.Errorf("%s is in neither Schemas nor EncryptedFields", ns)
		case s.err != nil:
			return nil, s.err
		case s.analysis == nil:
			fields, err := standIns(s.given, names)
			if err != nil {
				return nil, err
			}
			if s.analysis, err = analysis.ParseEncryptedFields(ns, fields); err != nil {
				return nil, err
			}
		}
		trees[ns] = s.analysis
	}
	res, err := analysis.Analyze(db, cmd, trees)
	if err != nil {
		return nil, err
	}
	out := make([]PlannedEncryption, len(res.Marks))
	for i, m := range res.Marks {
		if name, ok := names[m.KeyID]; ok {
			m.KeyAltName = name
		}
		if m.KeyAltName != "" {
			m.KeyID = bson.UUID{}
		}
		out[i] = PlannedEncryption{Namespace: m.Namespace, Place: m.Place, Path: m.Path, Operator: m.Operator,
			Algorithm: algorithms[m.Kind],
			Type:      m.Type, KeyID: m.KeyID, KeyAltName: m.KeyAltName, text: m.String()}
	}
	return out, nil
}

var algorithms = map[analysis.Kind]Algorithm{analysis.Deterministic: Deterministic, analysis.Random: Random,
	analysis.Unindexed: Unindexed,
	analysis.Equality:  Indexed, analysis.Range: Range, analysis.Text: String}

// standIns returns encryptedFields with an id that no key has for every key that is named,
// and adds the names to names.
func standIns(fields bson.Raw, names map[bson.UUID]string) (bson.Raw, error) {
	var doc bson.D
	if err := bson.Unmarshal(fields, &doc); err != nil {
		return nil, err
	}
	for _, e := range doc {
		list, _ := e.Value.(bson.A)
		for _, v := range list {
			field, _ := v.(bson.D)
			for i := range field {
				if name, ok := field[i].Value.(string); ok && field[i].Key == "keyAltName" {
					id := bson.UUID{14: byte(len(names) >> 8), 15: byte(len(names))} // of version 0
					for known, other := range names {
						if other == name {
							id = known
						}
					}
					names[id] = name
					field[i] = bson.E{Key: "keyId", Value: id}
				}
			}
		}
	}
	return bson.Marshal(doc)
}
