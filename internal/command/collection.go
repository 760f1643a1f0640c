package command

// Collection returns the collection that a command of the driver's own names, "" if it names none
// or several.
func Collection(cmd Command) string {
	switch c := cmd.(type) {
	case *Aggregate:
		return c.Collection
	case *Count:
		return c.Collection
	case *CreateIndexes:
		return c.Collection
	case *CreateSearchIndexes:
		return c.Collection
	case *Delete:
		return c.Collection
	case *Distinct:
		return c.Collection
	case *DropIndexes:
		return c.Collection
	case *DropSearchIndex:
		return c.Collection
	case *Find:
		return c.Collection
	case *FindAndModify:
		return c.Collection
	case *GetMore:
		return c.Collection
	case *Insert:
		return c.Collection
	case *KillCursors:
		return c.Collection
	case *ListIndexes:
		return c.Collection
	case *Named:
		return c.Target
	case *Update:
		return c.Collection
	case *UpdateSearchIndex:
		return c.Collection
	}
	return ""
}
