//go:build unix && !aix && !solaris

package main

import (
	"os"
	"syscall"
)

// lockFile makes a file and locks it for as long as it is open, or fails if another process has it.
func lockFile(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			file.Close()
			return nil, err
		}
		// The one who had it takes the file away before it lets go.
		mine, err := file.Stat()
		if there, err2 := os.Stat(path); err == nil && err2 == nil && os.SameFile(mine, there) {
			return file, nil
		}
		file.Close()
	}
}

// syncPath writes a file, or the entries of a folder, to the disk.
func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}
