// Reads a log as any client of C2SP tlog-tiles would, with golang.org/x/mod's own notes and trees:
// the checkpoint's signatures, every entry's inclusion, consistency with an older checkpoint.
//
// usage: foreign_log PREFIX LOG-KEY WITNESS-KEY OLDER-CHECKPOINT
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

func check(err error, what string) {
	if err != nil {
		fmt.Printf("%s: %v\n", what, err)
		os.Exit(3)
	}
}

func fetch(prefix, path string) ([]byte, error) {
	reply, err := http.Get(prefix + "/" + path)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != 200 {
		return nil, fmt.Errorf("%s: %s", path, reply.Status)
	}
	return io.ReadAll(reply.Body)
}

// A partial file may be gone once its full one is there.
func fetchPartial(prefix, full string, width int) ([]byte, error) {
	if width < 1<<height {
		if data, err := fetch(prefix, fmt.Sprintf("%s.p/%d", full, width)); err == nil {
			return data, nil
		}
	}
	return fetch(prefix, full)
}

type tiles struct {
	prefix string
	held   map[string][]byte
}

func (t tiles) Height() int { return height }

func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, tile := range wanted {
		width := tile.W
		tile.W = 1 << height
		path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
		data, known := t.held[path]
		if !known {
			var err error
			if data, err = fetchPartial(t.prefix, path, width); err != nil {
				return nil, err
			}
			t.held[path] = data
		}
		if len(data) > width*tlog.HashSize && len(data) == tlog.HashSize<<height {
			data = data[:width*tlog.HashSize]
		}
		found = append(found, data)
	}
	return found, nil
}

// The witness's signature (C2SP tlog-cosignature), which x/mod leaves to its callers.
type witness struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

func (w witness) Name() string    { return w.name }
func (w witness) KeyHash() uint32 { return w.hash }
func (w witness) Verify(text, sig []byte) bool {
	if len(sig) != 8+ed25519.SignatureSize {
		return false
	}
	time := binary.BigEndian.Uint64(sig)
	said := fmt.Sprintf("cosignature/v1\ntime %d\n%s", time, text)
	return ed25519.Verify(w.key, []byte(said), sig[8:])
}

func witnessOf(text string) (witness, error) {
	parts := strings.SplitN(text, "+", 3)
	if len(parts) != 3 {
		return witness{}, fmt.Errorf("no key: %q", text)
	}
	hash, err := strconv.ParseUint(parts[1], 16, 32)
	if err != nil {
		return witness{}, err
	}
	data, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(data) != 33 || data[0] != 4 {
		return witness{}, fmt.Errorf("no key for cosignatures: %v", err)
	}
	return witness{parts[0], uint32(hash), data[1:]}, nil
}

func treeOf(data []byte, verifiers note.Verifiers) (tlog.Tree, *note.Note, error) {
	opened, err := note.Open(data, verifiers)
	if err != nil {
		return tlog.Tree{}, nil, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 {
		return tlog.Tree{}, nil, fmt.Errorf("%d lines", len(lines)-1)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return tlog.Tree{}, nil, err
	}
	root, err := tlog.ParseHash(lines[2])
	return tlog.Tree{N: size, Hash: root}, opened, err
}

func main() {
	prefix := os.Args[1]
	logKey, err := note.NewVerifier(os.Args[2])
	check(err, "log key")
	watching, err := witnessOf(os.Args[3])
	check(err, "witness key")
	data, err := fetch(prefix, "checkpoint")
	check(err, "checkpoint")
	tree, opened, err := treeOf(data, note.VerifierList(logKey, watching))
	check(err, "checkpoint")
	// Also with the log's key alone: the witness is then unknown, and ignored.
	_, alone, err := treeOf(data, note.VerifierList(logKey))
	check(err, "checkpoint")

	reader := tlog.TileHashReader(tree, tiles{prefix, map[string][]byte{}})
	root, err := tlog.TreeHash(tree.N, reader)
	check(err, "root")
	if root != tree.Hash {
		check(fmt.Errorf("another root"), "root")
	}
	for at := int64(0); at < tree.N; {
		number := at >> height
		width := 1 << height
		if tree.N-at < int64(width) {
			width = int(tree.N - at)
		}
		full := fmt.Sprintf("tile/entries/%03d", number)
		bundle, err := fetchPartial(prefix, full, width)
		check(err, "entries")
		for i := 0; i < width; i++ {
			if len(bundle) < 2 || len(bundle) < 2+int(binary.BigEndian.Uint16(bundle)) {
				check(fmt.Errorf("cut off"), "entries")
			}
			length := 2 + int(binary.BigEndian.Uint16(bundle))
			hash := tlog.RecordHash(bundle[2:length])
			bundle = bundle[length:]
			proof, err := tlog.ProveRecord(tree.N, at, reader)
			check(err, "inclusion")
			check(tlog.CheckRecord(proof, tree.N, tree.Hash, at, hash), "inclusion")
			at++
		}
	}
	older, err := os.ReadFile(os.Args[4])
	check(err, "older checkpoint")
	before, _, err := treeOf(older, note.VerifierList(logKey))
	check(err, "older checkpoint")
	proof, err := tlog.ProveTree(tree.N, before.N, reader)
	check(err, "consistency")
	check(tlog.CheckTree(proof, tree.N, tree.Hash, before.N, before.Hash), "consistency")
	fmt.Printf("%d entries, from %d; signed by %d, alone %d\n",
		tree.N, before.N, len(opened.Sigs), len(alone.Sigs))
}
