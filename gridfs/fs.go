package gridfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"allium/bson"
)

// FS returns the bucket as a file system, which is an fs.ReadDirFS and an fs.StatFS. ctx bounds all
// its operations.
//
// Slashes in the names of files make directories. It has the newest revision of each file. Names
// that are not valid paths for io/fs, such as "/a" or "a//b", are left out. Where one file's name
// is also a directory of another file, the first one is listed; the other can be opened, but is not
// listed. FileInfo.Sys returns the *File; directories have no time.
//
// Files are io.Seeker, io.ReaderAt and io.WriterTo, so that a bucket can be served over HTTP, with
// range requests:
//
//	http.Handle("/", http.FileServerFS(bucket.FS(ctx)))
func (b *Bucket) FS(ctx context.Context) fs.FS { return &fileSystem{b, ctx} }

type fileSystem struct {
	bucket *Bucket
	ctx    context.Context
}

// Open implements fs.FS.
func (f *fileSystem) Open(name string) (fs.File, error) {
	l, file, err := f.find(name)
	switch {
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	case file == nil:
		return &openDir{fs: f, name: name}, nil
	}
	return &openFile{f.bucket.newDownload(f.ctx, l, file)}, nil
}

// Stat implements fs.StatFS.
func (f *fileSystem) Stat(name string) (fs.FileInfo, error) {
	_, file, err := f.find(name)
	switch {
	case err != nil:
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	case file == nil:
		return dirInfo(path.Base(name)), nil
	}
	return &fileInfo{&file.File}, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *fileSystem) ReadDir(name string) ([]fs.DirEntry, error) {
	_, file, err := f.find(name)
	if err == nil && file != nil {
		err = errNotDir
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = f.list(name)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return entries, nil
}

var (
	errNotDir = errors.New("not a directory")
	errIsDir  = errors.New("is a directory")
)

// find returns the file with a name, nil if it is a directory, and the time that is left for
// reading the file.
func (f *fileSystem) find(name string) (limit, *storedFile, error) {
	if !fs.ValidPath(name) {
		return limit{}, nil, fs.ErrInvalid
	}
	l, err := f.bucket.begin(f.ctx, nil)
	if err != nil || name == "." {
		return l, nil, err
	}
	file, err := f.bucket.fileByName(f.ctx, l, name, -1)
	if !errors.Is(err, ErrFileNotFound) {
		return l, file, err
	}
	found := false
	if err := f.walk(name, func(string, *File) bool { found = true; return false }); err != nil {
		return l, nil, err
	}
	if !found {
		return l, nil, ErrFileNotFound
	}
	return l, nil, nil
}

// list returns what is in a directory, in the order of the names.
func (f *fileSystem) list(dir string) ([]fs.DirEntry, error) {
	files, dirs := map[string]*File{}, map[string]bool{}
	err := f.walk(dir, func(rel string, file *File) bool {
		if name, _, below := strings.Cut(rel, "/"); below {
			dirs[name] = true
		} else {
			files[name] = file // the revisions come with the newest one last
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	for _, file := range files {
		entries = append(entries, fs.FileInfoToDirEntry(&fileInfo{file}))
	}
	for name := range dirs {
		if files[name] == nil {
			entries = append(entries, fs.FileInfoToDirEntry(dirInfo(name)))
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// walkBatch is how many files below a directory that was seen already are passed over before the
// rest of them is skipped with a new query.
const walkBatch = 500

// walk calls visit with the files below a directory, their names relative to it, until it returns
// false: every revision of those that lie in the directory itself, in the order of time, and at
// least one of those in each directory of it.
func (f *fileSystem) walk(dir string, visit func(rel string, file *File) bool) error {
	prefix := ""
	if dir != "." {
		prefix = dir + "/"
	}
	for from := prefix; ; {
		next, err := f.walkFrom(prefix, from, visit)
		if err != nil || next == "" {
			return err
		}
		from = next
	}
}

// walkFrom walks from a name on. It returns the name to go on from with a new query, "" at the end.
func (f *fileSystem) walkFrom(prefix, from string, visit func(rel string, file *File) bool) (next string, err error) {
	names := bson.D{{Key: "$gte", Value: from}}
	if prefix != "" {
		names = append(names, bson.E{Key: "$lt", Value: after(prefix)})
	}
	cur, err := f.bucket.Find(f.ctx, bson.D{{Key: "filename", Value: names}},
		FindOptions{Sort: bson.D{{Key: "filename", Value: 1}, {Key: "uploadDate", Value: 1}},
			BatchSize: new(int32(walkBatch))})
	if err != nil {
		return "", err
	}
	defer cur.Close(f.ctx)
	inside, passed := "", 0 // the directory that the last file was in, and how many of it were passed over
	for cur.Next(f.ctx) {
		file := cur.Current()
		if file.Name == "." || !fs.ValidPath(file.Name) {
			continue
		}
		rel := file.Name[len(prefix):]
		if name, _, below := strings.Cut(rel, "/"); below {
			if name == inside {
				if passed++; passed == walkBatch {
					return after(prefix + name + "/"), nil
				}
				continue
			}
			inside, passed = name, 0
		}
		if !visit(rel, &file) {
			return "", nil
		}
	}
	return "", cur.Err()
}

// after returns the first string behind those that begin with a prefix that ends with a slash.
func after(prefix string) string { return prefix[:len(prefix)-1] + "0" }

// openFile is an fs.File.
type openFile struct{ *DownloadStream }

func (f *openFile) Stat() (fs.FileInfo, error) {
	if f.closed.Load() {
		return nil, ErrClosed
	}
	return &fileInfo{f.File()}, nil
}

// openDir is an fs.ReadDirFile.
type openDir struct {
	fs      *fileSystem
	name    string
	read    bool
	entries []fs.DirEntry // that are left
	closed  bool
}

func (d *openDir) Stat() (fs.FileInfo, error) {
	if d.closed {
		return nil, ErrClosed
	}
	return dirInfo(path.Base(d.name)), nil
}

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errIsDir}
}

func (d *openDir) Close() error {
	if d.closed {
		return ErrClosed
	}
	d.closed = true
	return nil
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	err := error(nil)
	switch {
	case d.closed:
		err = ErrClosed
	case !d.read:
		d.entries, err = d.fs.list(d.name)
		d.read = err == nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: d.name, Err: err}
	}
	if n <= 0 || n > len(d.entries) {
		if n > 0 && len(d.entries) == 0 {
			return nil, io.EOF
		}
		n = len(d.entries)
	}
	entries := d.entries[:n:n]
	d.entries = d.entries[n:]
	return entries, nil
}

// fileInfo is the fs.FileInfo of a file.
type fileInfo struct{ file *File }

func (i *fileInfo) Name() string       { return path.Base(i.file.Name) }
func (i *fileInfo) Size() int64        { return i.file.Length }
func (i *fileInfo) Mode() fs.FileMode  { return 0o444 }
func (i *fileInfo) ModTime() time.Time { return i.file.UploadDate }
func (i *fileInfo) IsDir() bool        { return false }
func (i *fileInfo) Sys() any           { return i.file }

// String makes an entry print as a line.
func (i *fileInfo) String() string { return fs.FormatFileInfo(i) }

// dirInfo is the fs.FileInfo of a directory: its base name.
type dirInfo string

func (i dirInfo) Name() string       { return string(i) }
func (i dirInfo) Size() int64        { return 0 }
func (i dirInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o555 }
func (i dirInfo) ModTime() time.Time { return time.Time{} }
func (i dirInfo) IsDir() bool        { return true }
func (i dirInfo) Sys() any           { return nil }

// String makes an entry print as a line.
func (i dirInfo) String() string { return fs.FormatFileInfo(i) }

var (
	_ fs.ReadDirFS   = (*fileSystem)(nil)
	_ fs.StatFS      = (*fileSystem)(nil)
	_ fs.ReadDirFile = (*openDir)(nil)
	_ interface {
		io.ReadSeekCloser
		io.ReaderAt
		io.WriterTo
	} = (*openFile)(nil)
)
