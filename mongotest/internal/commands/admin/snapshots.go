package admin

import (
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// The commands about snapshots are no server's: a test in any language saves the state of a
// deployment under a name, and goes back to it.
func init() {
	for _, c := range []*server.Command{
		{Name: "saveSnapshot", Run: runSaveSnapshot},
		{Name: "restoreSnapshot", Run: runRestoreSnapshot},
		{Name: "dropSnapshot", Run: runDropSnapshot},
		{Name: "listSnapshots", Run: runListSnapshots},
	} {
		c.Own, c.AdminOnly, c.Needs = true, true, server.OnCluster("shutdown")
		server.Register(c)
	}
}

// snapshotName returns the name of the snapshot that a command is about: the command's value.
func snapshotName(r *server.Request) (string, error) {
	t := &args.Table[args.None]{Name: r.Cmd.Name, Lax: true}
	if err := t.ParseCommand(r, nil); err != nil {
		return "", err
	}
	name, ok := r.Body.Lookup(r.Name).StringValue()
	if !ok || name == "" {
		return "", srverr.New(srverr.BadValue, "%s: want the name of a snapshot, and not %s", r.Cmd.Name,
			r.Body.Lookup(r.Name))
	}
	return name, nil
}

func runSaveSnapshot(r *server.Request, dst []byte) ([]byte, error) {
	name, err := snapshotName(r)
	if err == nil {
		err = wrong(r.Node.Config().Snapshots.Save(name))
	}
	return dst, err
}

func runRestoreSnapshot(r *server.Request, dst []byte) ([]byte, error) {
	name, err := snapshotName(r)
	if err == nil {
		err = wrong(r.Node.Config().Snapshots.Restore(name))
	}
	return dst, err
}

func runDropSnapshot(r *server.Request, dst []byte) ([]byte, error) {
	name, err := snapshotName(r)
	if err == nil && !r.Node.Config().Snapshots.Drop(name) {
		err = srverr.New(srverr.NamespaceNotFound, "there is no snapshot %q", name)
	}
	return dst, err
}

func runListSnapshots(r *server.Request, dst []byte) ([]byte, error) {
	return bsondoc.AppendStrings(dst, "snapshots", r.Node.Config().Snapshots.Names()), nil
}

// wrong is an error of a snapshot as a client sees it.
func wrong(err error) error {
	if err == nil {
		return nil
	}
	return srverr.New(srverr.IllegalOperation, "%v", err)
}
