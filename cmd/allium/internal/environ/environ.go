// Package environ reads the variables of the environment with which the official images are set up:
// MONGO_INITDB_ROOT_USERNAME, MONGO_INITDB_ROOT_PASSWORD and MONGO_INITDB_DATABASE, and the same
// with _FILE, which name files with the values.
package environ

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// The names of the variables.
const (
	Username = "MONGO_INITDB_ROOT_USERNAME"
	Password = "MONGO_INITDB_ROOT_PASSWORD"
	Database = "MONGO_INITDB_DATABASE"

	inFile = "_FILE"
)

// Initial is what the variables say; fields are empty if they say nothing.
type Initial struct{ Username, Password, Database string }

// Read reads the variables. Its errors name the one that is wrong, and what was wanted.
func Read(getenv func(string) string) (Initial, error) {
	var all Initial
	for _, v := range []struct {
		name string
		to   *string
	}{{Username, &all.Username}, {Password, &all.Password}, {Database, &all.Database}} {
		text, err := value(getenv, v.name)
		if err != nil {
			return Initial{}, err
		}
		*v.to = text
	}
	switch {
	case all.Username != "" && all.Password == "":
		return Initial{}, fmt.Errorf("%s is set: want %s, too", Username, Password)
	case all.Password != "" && all.Username == "":
		return Initial{}, fmt.Errorf("%s is set: want %s, too", Password, Username)
	case strings.ContainsAny(all.Database, "/\\. \"$*<>:|?\x00") || len(all.Database) >= 64:
		return Initial{}, fmt.Errorf("%s: want the name of a database, and not %q", Database, all.Database)
	}
	return all, nil
}

// value returns the value of a variable, or what the file holds that its other form names.
func value(getenv func(string) string, name string) (string, error) {
	text, path := getenv(name), getenv(name+inFile)
	if path == "" {
		return text, nil
	}
	if text != "" {
		return "", fmt.Errorf("%s and %s are set: want one of them", name, name+inFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return "", fmt.Errorf("%s: want a file that can be read, and %q is none: %w", name+inFile, path, err)
	}
	if text = strings.TrimRight(string(data), "\r\n"); text == "" {
		return "", fmt.Errorf("%s: want a value in the file %q, which is empty", name+inFile, path)
	}
	return text, nil
}
