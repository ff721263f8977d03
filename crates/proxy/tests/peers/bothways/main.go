// Command bothways sends much through a connection in both directions at once, and says whether all of it arrived.
//
//	bothways serve CERTIFICATE KEY MIB PORT PORT PORT PORT
//	bothways ask KIND ADDRESS MIB
//
// The server takes connections on 127.0.0.1, a port for each kind: https13, https12, http and smtp. A client of a kind sends MIB
// MiB there while as many come back. Each end sends the SHA-256 of what it has sent behind it. Exit code of ask: 0 if both
// directions arrived as they were sent, 1 if not.
package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

var kinds = []string{"https13", "https12", "http", "smtp"}

const piece = 256 << 10

// Sends many bytes, of which no two pieces are alike, and their digest.
func send(to io.Writer, mib int64) error {
	block := make([]byte, piece)
	rand.New(rand.NewSource(time.Now().UnixNano())).Read(block)
	digest := sha256.New()
	for number := int64(0); number < mib<<20/piece; number++ {
		binary.BigEndian.PutUint64(block, uint64(number))
		digest.Write(block)
		if _, err := to.Write(block); err != nil {
			return fmt.Errorf("sending stopped in piece %d: %w", number, err)
		}
	}
	_, err := to.Write(digest.Sum(nil))
	return err
}

// Takes as many, and says whether they are what was sent.
func take(from io.Reader, mib int64) error {
	digest := sha256.New()
	if got, err := io.CopyBuffer(digest, io.LimitReader(from, mib<<20), make([]byte, piece)); err != nil || got < mib<<20 {
		return fmt.Errorf("cut off behind %d bytes: %v", got, err)
	}
	said := make([]byte, sha256.Size)
	if _, err := io.ReadFull(from, said); err != nil {
		return fmt.Errorf("no digest: %w", err)
	}
	if string(said) != string(digest.Sum(nil)) {
		return errors.New("what came is not what was sent")
	}
	return nil
}

func config(kind string) *tls.Config {
	version := map[string]uint16{"https13": tls.VersionTLS13, "https12": tls.VersionTLS12}[kind]
	return &tls.Config{MinVersion: version, MaxVersion: version, InsecureSkipVerify: true}
}

// What is said before the rest: lines of the one end and of the other, in turns, the client's first.
func begin(kind string, mib int64) [][2]string {
	length := mib<<20 + sha256.Size
	if kind == "smtp" {
		return [][2]string{{"", "220 ready\r\n"}, {"EHLO there\r\n", "250 go on\r\n"}, {"DATA\r\n", "354 go on\r\n"}}
	}
	request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: inner.test\r\nContent-Length: %d\r\n\r\n", length)
	return [][2]string{{request, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length)}}
}

func hear(from *bufio.Reader, words string) error {
	got := make([]byte, len(words))
	if _, err := io.ReadFull(from, got); err != nil {
		return err
	}
	if string(got) != words {
		return fmt.Errorf("%q came where %q had to", got, words)
	}
	return nil
}

func exchange(conn net.Conn, from *bufio.Reader, kind string, mib int64, asks bool) error {
	for _, turn := range begin(kind, mib) {
		for which, words := range turn {
			if words == "" {
				continue
			}
			if (which == 0) == asks {
				if _, err := io.WriteString(conn, words); err != nil {
					return err
				}
			} else if err := hear(from, words); err != nil {
				return err
			}
		}
	}
	sent := make(chan error, 1)
	go func() { sent <- send(conn, mib) }()
	return errors.Join(take(from, mib), <-sent)
}

func serve(certificate, key string, mib int64, ports []string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for number, kind := range kinds {
		listener, err := net.Listen("tcp", "127.0.0.1:"+ports[number])
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					failed <- err
					return
				}
				go func() {
					defer conn.Close()
					if strings.HasPrefix(kind, "https") {
						config := config(kind)
						config.Certificates = []tls.Certificate{pair}
						conn = tls.Server(conn, config)
					}
					// The client says whether it has all; the last word is this one's.
					answer := "whole"
					if err := exchange(conn, bufio.NewReader(conn), kind, mib, false); err != nil {
						answer = "no   "
						fmt.Fprintln(os.Stderr, kind, err)
					}
					io.WriteString(conn, answer)
				}()
			}
		}()
	}
	return <-failed
}

func ask(kind, address string, mib int64) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if strings.HasPrefix(kind, "https") {
		conn = tls.Client(conn, config(kind))
	}
	from := bufio.NewReader(conn)
	if err := exchange(conn, from, kind, mib, true); err != nil {
		return err
	}
	return hear(from, "whole")
}

func run(args []string) error {
	if len(args) == 8 && args[0] == "serve" {
		mib, err := strconv.ParseInt(args[3], 10, 32)
		return errors.Join(err, serve(args[1], args[2], mib, args[4:]))
	}
	if len(args) == 4 && args[0] == "ask" {
		mib, err := strconv.ParseInt(args[3], 10, 32)
		return errors.Join(err, ask(args[1], args[2], mib))
	}
	return errors.New("usage: bothways serve CERTIFICATE KEY MIB PORT PORT PORT PORT | ask KIND ADDRESS MIB")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
