//! VMess with the AEAD header (`alterId` 0).
