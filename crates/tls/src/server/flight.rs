//! The four messages behind a ServerHello, and the keys that change with them.

use super::{Agreed, Identity};
use crate::codec::{
    ClientHello, signed_by_server, write_certificate, write_certificate_verify, write_encrypted_extensions,
    write_finished,
};
use crate::error::{Alert, Error};
use crate::records::{Opening, Records, Sealing, Version};
use crate::schedule::{Handshake, KeyLog, Secrets, Transcript};
use crate::suite::Digest;

/// A server that has made its flight, all but what is around it.
pub(super) struct Flight {
    /// EncryptedExtensions, Certificate, CertificateVerify, Finished.
    pub(super) messages: [Vec<u8>; 4],
    /// Seals them.
    pub(super) sealing: Sealing,
    /// Opens what the client answers.
    pub(super) opening: Opening,
    /// The transcript up to the server's Finished.
    pub(super) transcript: Digest,
    pub(super) handshake: Handshake,
    /// The records of the application: what is sent behind the flight is sealed by them.
    pub(super) records: Records,
}

/// The hellos of both sides, and what they agree on.
pub(super) struct Hellos<'a> {
    pub(super) client: &'a ClientHello<'a>,
    /// The whole message.
    pub(super) server: &'a [u8],
    pub(super) agreed: &'a Agreed,
    /// What both share.
    pub(super) shared: &'a [u8],
    /// With both hellos.
    pub(super) transcript: Transcript,
}

impl Flight {
    pub(super) fn new(
        hellos: Hellos<'_>,
        extensions: &[(u16, &[u8])],
        identity: &dyn Identity,
        log: Option<&dyn KeyLog>,
    ) -> Result<Flight, Error> {
        let Hellos {
            client,
            server,
            agreed,
            shared,
            mut transcript,
        } = hellos;
        let log = log.map(|log| (log, client.random));
        let handshake = Handshake::new(agreed.suite, shared, &transcript.value(), log);
        let mut messages = [const { Vec::new() }; 4];
        let [encrypted, certificate, verify, finished] = &mut messages;

        write_encrypted_extensions(encrypted, extensions)?;
        transcript.add(encrypted);
        write_certificate(certificate, &identity.certificates(client, server)?)?;
        transcript.add(certificate);
        let offered = client.extensions.signature_algorithms()?;
        let offered = offered.ok_or(Error::peer(
            Alert::MissingExtension,
            "ClientHello without signature_algorithms",
        ))?;
        let (scheme, signature) = identity.sign(offered, &signed_by_server(transcript.value().as_ref()))?;
        write_certificate_verify(verify, scheme, &signature)?;
        transcript.add(verify);
        write_finished(
            finished,
            handshake.secrets.server.finished(&transcript.value()).as_ref(),
        )?;
        transcript.add(finished);

        let transcript = transcript.value();
        let Secrets { client, server } = handshake.application(&transcript, log);
        Ok(Flight {
            messages,
            sealing: Sealing::new(Version::Tls13, &handshake.secrets.server.keys())?,
            opening: Opening::new(Version::Tls13, &handshake.secrets.client.keys())?,
            transcript,
            handshake,
            records: Records::after(server, client, false)?,
        })
    }
}
